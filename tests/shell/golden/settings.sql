.show
.headers on
.mode box
.nullvalue nil
.separator x y
.show
.mode csv
.show
.mode list
.width 3 -4
.show
.changes on
CREATE TABLE t(a);
INSERT INTO t VALUES(1),(2),(3);
UPDATE t SET a = a + 1 WHERE a > 1;
DELETE FROM t;
SELECT 5;
.changes off
.echo on
SELECT 1;
.print hello
.echo off
.print one "two three" 'four five' "tab\there" 'raw\t'
.bail maybe
.headers
.nullvalue
.separator
.width 1 2 3
.timeout 100
.timeout
.databases
.nonsense
.bail
.echo
.changes
.eqp off
.explain off
.stats off
.prompt a b
.binary off
.timer off
.read nofile.sql
.open
.print done
