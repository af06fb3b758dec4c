.open one.db
CREATE TABLE t(a);
INSERT INTO t VALUES(1), (2);
ATTACH 'two.db' AS two;
CREATE TABLE two.u(b);
INSERT INTO u VALUES('in two');
.tables
.schema
.dump
.indexes
DETACH two;
.clone three.db
.open three.db
SELECT * FROM t;
.open --readonly two.db
SELECT * FROM u;
INSERT INTO u VALUES(1);
.open --new one.db
.tables
.open two.db
.backup main four.db
.backup
.save five.db
.open five.db
SELECT * FROM u;
