-- The ledger that clients work on: 10,000 accounts, 40,000 transfers among them, and the sums kept right.
CREATE TABLE account(id INTEGER PRIMARY KEY, debits INT, credits INT);
CREATE TABLE transfer(id INTEGER PRIMARY KEY, debit INT, credit INT, amount INT);
INSERT INTO transfer(debit, credit, amount)
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
    SELECT i * 7919 % 10000 + 1, i * 104729 % 9999 + 1, i % 97 + 1 FROM n;
CREATE INDEX transfer_debit ON transfer(debit, id);
CREATE INDEX transfer_credit ON transfer(credit, id);
INSERT INTO account
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
    SELECT i, (SELECT ifnull(sum(amount), 0) FROM transfer WHERE debit = i),
           (SELECT ifnull(sum(amount), 0) FROM transfer WHERE credit = i) FROM n;
