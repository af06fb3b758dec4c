SELEC 1;
SELECT nope;
SELECT 1 +;
SELECT * FROM nothing;
CREATE TABLE t(a INTEGER PRIMARY KEY, b UNIQUE NOT NULL, CHECK(b > 0));
INSERT INTO t VALUES(1, 1);
INSERT INTO t VALUES(1, 2);
INSERT INTO t VALUES(2, 1);
INSERT INTO t VALUES(2, NULL);
INSERT INTO t VALUES(2, -1);
INSERT INTO t VALUES('x', 5);
SELECT a, b FROM t WHERE a = 1 AND unknown_function(a) ORDER BY some_long_column_name_here_to_scroll, b;
SELECT 'unclosed;
';
SELECT "no such column";
SELECT 1; SELECT 2; SELEC 3; SELECT 4;
BEGIN; INSERT INTO t VALUES(3, 3); ROLLBACK;
SELECT count(*) FROM t;
SELECT abs(-9223372036854775808);
SELECT json('{');
/* a comment
over lines */ SELECT 'after a comment';
SELECT 'go'
go
SELECT 'slash'
/
;
;;
SELECT 1 /* open
*/ + 1;
CREATE TRIGGER tr AFTER INSERT ON t BEGIN
  SELECT 1;
  SELECT RAISE(ABORT, 'not this one') WHERE new.a = 9;
END;
INSERT INTO t VALUES(9, 9);
SELECT * FROM t WHERE a = (SELECT 1, 2);
.bail on
SELECT 'last before';
SELEC;
SELECT 'never';
