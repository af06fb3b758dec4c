CREATE TABLE parent(id INTEGER PRIMARY KEY, name TEXT COLLATE NOCASE, CHECK(length(name) > 1));
CREATE TABLE child(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  parent_id INT REFERENCES parent(id) ON DELETE CASCADE, -- a comment
  note TEXT DEFAULT 'none'
);
CREATE INDEX child_parent ON child(parent_id);
CREATE UNIQUE INDEX parent_name ON parent(name);
CREATE VIEW both AS SELECT p.name, c.note FROM parent p JOIN child c ON c.parent_id = p.id;
CREATE TRIGGER child_added AFTER INSERT ON child BEGIN UPDATE parent SET name = name || '!' WHERE id = new.parent_id; END;
CREATE TABLE "odd name"("a b" INT, 'c' TEXT, [d] , UNIQUE("a b"));
CREATE TABLE k(a, b, PRIMARY KEY(a, b)) WITHOUT ROWID;
INSERT INTO parent VALUES(1, 'one'), (2, 'two');
INSERT INTO child(parent_id) VALUES(1), (2), (1);
.schema
.schema child
.schema CHILD%
.schema both
.schema nothing
.schema --indent
.schema --nosys
.schema --indent child
.schema sqlite_schema
.schema "odd name"
.tables
.tables c%
.tables p% k
.tables main
.indexes
.indexes child
.indices parent
.fullschema
ANALYZE child;
.fullschema
.schema --nosys
.fullschema --indent
.tables
.dump
.dump parent
.dump c% k
.dump --data-only
.dump --preserve-rowids k parent
.dump --nosys
.dump --newlines
