# A session through the sqlite3 gem.
require "sqlite3"

db = SQLite3::Database.new(ARGV[0])
db.execute_batch("CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT UNIQUE, price REAL); CREATE INDEX i ON t(name);")
db.execute("INSERT INTO t(name, price) VALUES(?, ?)", ["one", 1.5])
db.prepare("INSERT INTO t(name, price) VALUES(:name, :price)") do |insert|
  insert.execute("name" => "two", "price" => nil)
  insert.execute("name" => "three", "price" => 3)
end
puts "last #{db.last_insert_row_id} changes #{db.changes}"
db.execute("SELECT id, name, price, typeof(price) FROM t ORDER BY id") { |row| p row }
begin
  db.execute("INSERT INTO t(name) VALUES('one')")
rescue SQLite3::Exception => e
  puts "#{e.class} #{e.message}"
end
begin
  db.execute("SELEC 1")
rescue SQLite3::Exception => e
  puts "#{e.class} #{e.message}"
end
db.transaction { |inside| inside.execute("UPDATE t SET price = 8 WHERE id = 1") }
begin
  db.transaction { |inside| inside.execute("DELETE FROM t"); raise "no" }
rescue RuntimeError => e
  puts e.message
end
p db.get_first_value("SELECT sum(price) FROM t")
db.create_function("twice", 1) { |function, value| function.result = 2 * value }
db.create_aggregate("longest", 1) do
  step { |context, value| context[:best] = [context[:best] || "", value].max_by(&:length) }
  finalize { |context| context.result = context[:best] }
end
p db.get_first_row("SELECT twice(21), longest(name) FROM t")
db.results_as_hash = true
p db.get_first_row("SELECT id, name FROM t WHERE id = 2")
db.results_as_hash = false
p db.table_info("t").map { |column| [column["name"], column["type"], column["pk"]] }
p db.index_list("t").map { |index| index["name"] }.sort
p db.prepare("SELECT * FROM t").columns
p db.prepare("SELECT * FROM t").types
copy = SQLite3::Database.new(":memory:")
backup = SQLite3::Backup.new(copy, "main", db, "main")
p backup.step(-1) == SQLite3::Constants::ErrorCode::DONE
backup.finish
p copy.get_first_value("SELECT count(*) FROM t")
db.busy_timeout(100)
p db.complete?("SELECT 1;"), db.complete?("SELECT 1")
db.close
p db.closed?
