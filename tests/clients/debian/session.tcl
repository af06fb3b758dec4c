# A session through the Tcl interface.
package require sqlite3
sqlite3 db [lindex $argv 0]
db eval {CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT UNIQUE, price REAL)}
foreach {name price} {one 1.5 two {} three 3} {
    db eval {INSERT INTO t(name, price) VALUES($name, $price)}
}
puts "last [db last_insert_rowid] changes [db changes]"
db eval {SELECT id, name, price, typeof(price) AS kind FROM t ORDER BY id} row {
    puts "$row(id) $row(name) $row(price) $row(kind)"
}
puts [catch {db eval {INSERT INTO t(name) VALUES('one')}} text]
puts "$text [db errorcode]"
puts [catch {db eval {SELEC 1}} text]
puts $text
db function twice -argcount 1 {apply {x {expr {2 * $x}}}}
db collate backwards {apply {{a b} {string compare $b $a}}}
puts [db eval {SELECT twice(id) FROM t ORDER BY name COLLATE backwards}]
puts [db onecolumn {SELECT count(*) FROM t}]
puts [db exists {SELECT 1 FROM t WHERE id = 9}]
catch {db transaction { db eval {DELETE FROM t}; error no }}
puts [db onecolumn {SELECT count(*) FROM t}]
set updates {}
db update_hook {lappend updates}
db eval {UPDATE t SET price = 7 WHERE id > 1; DELETE FROM t WHERE id = 3}
puts $updates
db update_hook {}
set commits 0
db commit_hook {incr commits; expr 0}
db eval {INSERT INTO t(name) VALUES('four')}
puts "commits $commits"
db commit_hook {}
db nullvalue NIL
puts [db eval {SELECT * FROM t ORDER BY id}]
db backup [lindex $argv 0].copy
sqlite3 copy [lindex $argv 0].copy
puts "copy [copy onecolumn {SELECT count(*) FROM t}]"
copy close
set chan [open [lindex $argv 0].csv w]
puts $chan "10\tten\t1.0\n11\televen\t1.1"
close $chan
puts "import [db copy abort t [lindex $argv 0].csv]"
puts [db eval {SELECT name FROM t WHERE id >= 10}]
db eval {CREATE TABLE b(x BLOB); INSERT INTO b VALUES(x'616263')}
set blob [db incrblob b x 1]
puts -nonewline $blob X
flush $blob
seek $blob 0
puts [read $blob]
close $blob
puts [db complete {SELECT 1;}]
db close
puts done
