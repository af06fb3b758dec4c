.once one.csv
.print id,name,note
.output two.csv
.print 1,plain,
.print 2,"with ""quotes"", comma",x
.output stdout
.print back
.mode csv
.import one.csv heads
.schema heads
.import two.csv heads
SELECT * FROM heads;
CREATE TABLE typed(id INTEGER PRIMARY KEY, name TEXT);
.mode list
.separator |
.import --csv two.csv typed
SELECT id, typeof(id), name FROM typed;
.import --csv two.csv fresh
.schema fresh
.import nofile.csv x
.once list.txt
.print a|b|c
.import list.txt bylist
.schema bylist
.mode tabs
.once tab.txt
SELECT 1, 'x y', NULL;
.import tab.txt bytab
SELECT * FROM bytab;
.import --ascii two.csv asc
.schema asc
.mode csv
.once out.csv
SELECT 'a "b"', 'c,d', 'e f', '', NULL, 5, x'00', 'ä';
.mode list
.read '|cat out.csv'
.import '|cat two.csv' piped
.import --csv '|cat two.csv' piped
.schema piped
.output |cat
SELECT 'through a pipe';
.output
.once |cat
SELECT 'once through a pipe';
SELECT 'and not';
.shell echo from the shell
.system echo again
.shell exit 3
.cd /
.shell pwd
.cd nowhere/at/all
.once
.databases
