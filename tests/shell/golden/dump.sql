CREATE TABLE a(x);
CREATE VIEW v AS SELECT x FROM a;
CREATE TABLE b(i INTEGER PRIMARY KEY AUTOINCREMENT, t TEXT, r REAL, bl BLOB, g AS (i * 2), s AS (t || '!') STORED);
CREATE INDEX bi ON b(t);
CREATE TRIGGER tr AFTER INSERT ON a BEGIN SELECT 1; END;
INSERT INTO a VALUES(1), (2.5), ('text'), (x'00ff'), (NULL), (''), ('it''s'), ('two
lines'), ('carriage' || char(13) || 'return'), ('both' || char(13) || char(10) || 'ends'), (123456789012345678),
 (1.0), (100000000000000000000.0);
INSERT INTO b(t, r, bl) VALUES('one', 1, zeroblob(3)), ('zwei', 2.5, x'');
CREATE TABLE "table"("select" INT, "a""b" TEXT);
INSERT INTO "table" VALUES(1, '"');
CREATE TABLE w(k TEXT PRIMARY KEY, v) WITHOUT ROWID;
INSERT INTO w VALUES('z', 1), ('a', 2);
CREATE TABLE empty(a, b);
PRAGMA foreign_keys = ON;
.dump
.dump b
.dump 'table'
.mode insert
SELECT * FROM a;
.mode quote
SELECT * FROM a;
.once dumped.sql
.dump
.open again.db
.read dumped.sql
.mode list
SELECT quote(x) FROM a;
SELECT *, g, s FROM b;
SELECT name, seq FROM sqlite_sequence;
