CREATE TABLE t(a INTEGER PRIMARY KEY, name TEXT, w REAL, b BLOB);
INSERT INTO t VALUES(1,'x',1.5,x'4142'),(22,'long "name", it''s <b>&',-2.0,NULL),(3,'ä two
lines',7.25,x'');
.mode ascii
SELECT * FROM t;
.print
.mode html
SELECT * FROM t;
.headers on
SELECT a, name FROM t;
.headers off
.mode tcl
SELECT * FROM t;
.headers on
SELECT a, name FROM t;
.headers off
.mode qbox
SELECT * FROM t;
.mode box --wrap 6
SELECT * FROM t;
.mode box --wrap 10 --ww
SELECT 'some words that are longer than ten and more' AS a, 1 AS b;
.mode table --quote
SELECT * FROM t;
.mode column --wrap 8
SELECT * FROM t;
.mode column
.width 4 -12 3
SELECT * FROM t;
.width 0
SELECT * FROM t;
.mode box
.width 10 2
SELECT a, name FROM t;
.mode markdown --quote
.width
SELECT * FROM t;
.mode
.mode insert tt
SELECT * FROM t;
.mode insert
SELECT * FROM t LIMIT 1;
.mode insert "odd name"
SELECT * FROM t LIMIT 1;
.headers on
SELECT a, name FROM t LIMIT 1;
.mode line
SELECT * FROM t;
.mode json
SELECT * FROM t;
SELECT 1 WHERE 0;
.mode csv
SELECT * FROM t;
.mode quote
SELECT * FROM t;
.mode tabs
SELECT * FROM t;
.mode list
.separator , ;
SELECT * FROM t LIMIT 2;
.print
.mode nonsense
.mode lines
.mode columns
SELECT 1 AS x, 2 AS y;
.nullvalue NIL
SELECT NULL AS n;
.mode box
SELECT NULL AS n;
.mode json
SELECT NULL AS n;
