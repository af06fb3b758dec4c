.headers on
.mode box
CREATE TABLE books(
  id INTEGER PRIMARY KEY,
  title TEXT NOT NULL,
  price REAL,
  facts TEXT
) STRICT;
INSERT INTO books(title, price, facts) VALUES
  ('Dune', 9.5, '{"author": "Herbert", "pages": 412}'),
  ('Emma', 7, '{"author": "Austen", "pages": 474}'),
  ('Ulysses', 12.25, '{"author": "Joyce", "pages": 730}');
INSERT INTO books(title, price) VALUES('Bad', 'cheap');
SELECT * FROM books;
SELECT title, facts ->> 'author' AS author, facts ->> '$.pages' AS pages FROM books
WHERE facts ->> 'pages' > 450;
.schema books
.save library.db
.open library.db
.tables
SELECT count(*) AS n, sum(price) AS total FROM books;
UPDATE books SET price = price + 1 WHERE id = 2;
.backup copy.db
DELETE FROM books;
SELECT count(*) FROM books;
.restore copy.db
SELECT id, price FROM books;
.mode markdown
SELECT id, title, price FROM books ORDER BY price DESC;
.mode box
SELECT title, price, sum(price) OVER (ORDER BY id) AS running,
       rank() OVER (ORDER BY price DESC) AS place
FROM books ORDER BY id;
SELECT title, price - lag(price, 1, 0) OVER w AS more, first_value(title) OVER w AS first
FROM books WINDOW w AS (ORDER BY price) ORDER BY price;
.quit
