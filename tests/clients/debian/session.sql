.headers on
CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT NOT NULL, price REAL, data BLOB);
INSERT INTO t VALUES(1,'one',1.5,x'0001'),(2,'two',NULL,NULL),(3,'it''s',3,'text');
CREATE INDEX i ON t(name);
CREATE VIEW v AS SELECT name, price*2 AS double FROM t;
CREATE TRIGGER tr AFTER DELETE ON t BEGIN INSERT INTO log VALUES(old.id); END;
CREATE TABLE log(id);
SELECT * FROM t;
.mode column
SELECT * FROM t;
.mode line
SELECT * FROM t WHERE id=1;
.mode csv
SELECT * FROM t;
.mode insert t
SELECT * FROM t;
.mode quote
SELECT * FROM t;
.mode json
SELECT id, name, price FROM t;
.mode markdown
SELECT id, name FROM t;
.mode box
SELECT id, name FROM t;
.mode table
SELECT id, name FROM t;
.mode list
.tables
.indexes
.schema
.dump
DELETE FROM t WHERE id=2;
SELECT * FROM log;
SELECT nothing FROM t;
INSERT INTO t VALUES(1,'again',1,1);
.parameter set :x 3
SELECT name FROM t WHERE id=:x;
.changes on
UPDATE t SET price=price+1;
.changes off
BEGIN; DELETE FROM t; ROLLBACK;
SELECT count(*), sum(price) FROM t;
PRAGMA table_info(t);
PRAGMA foreign_keys;
.bail off
.nullvalue NIL
SELECT NULL, 1;
.separator ;
SELECT 1, 2;
.width 10 5
.mode column
SELECT name, id FROM t;
.show
.databases
WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c WHERE n<5) SELECT group_concat(n) FROM c;
SELECT json_extract('{"a":[1,2]}','$.a[1]'), date('2024-02-29','+1 year');
.backup copy.db
.open copy.db
SELECT count(*) FROM t;
.fullschema
.lint fkey-indexes
.quit
