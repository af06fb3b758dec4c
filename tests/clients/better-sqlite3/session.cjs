// session.cjs ADDON FOLDER -- what a program does with better-sqlite3; prints what it sees.
'use strict';
const path = require('node:path');
const Database = require('better-sqlite3');
const [addon, folder] = process.argv.slice(2);
const open = (name, more) => new Database(name, { nativeBinding: addon, ...more });

function show(title, work) {
  let text;
  try {
    text = JSON.stringify(work(), (key, value) =>
      typeof value === 'bigint' ? `${value}n` : Buffer.isBuffer(value) ? value.toString('hex') :
        value === undefined ? 'undefined' : value);
  } catch (error) {
    text = `${error.name} ${error.code}: ${error.message}`;
  }
  console.log(`${title}: ${text}`);
}

const db = open(path.join(folder, 'app.db'));
show('pragma', () => [db.pragma('user_version = 7'), db.pragma('user_version', { simple: true }),
  db.pragma('foreign_keys = ON'), db.pragma('foreign_keys')]);
show('schema', () => db.exec(`
  CREATE TABLE author(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
  CREATE TABLE book(id INTEGER PRIMARY KEY, author REFERENCES author ON DELETE CASCADE, title TEXT,
    price REAL CHECK (price >= 0), cover BLOB);
  CREATE INDEX book_author ON book(author, title);
`) === db);

const author = db.prepare('INSERT INTO author(name) VALUES (?)');
const book = db.prepare('INSERT INTO book VALUES (@id, @author, @title, @price, @cover)');
show('run', () => [author.run('Woolf'), author.run('Kafka'), author.run('Borges')]);
show('named', () => book.run({ id: 10, author: 1, title: 'The Waves', price: 9.5, cover: Buffer.from([0, 255]) }));
show('unique', () => author.run('Kafka'));
show('not null', () => author.run(null));
show('foreign key', () => book.run({ id: 11, author: 99, title: '?', price: 1, cover: null }));
show('check', () => book.run({ id: 11, author: 1, title: '?', price: -1, cover: null }));
show('missing parameter', () => book.run({ id: 11 }));
show('too many', () => author.run('a', 'b'));
show('syntax', () => db.prepare('SELEC 1'));
show('no table', () => db.prepare('SELECT * FROM nowhere'));
show('two statements', () => db.prepare('SELECT 1; SELECT 2'));

const fill = db.transaction((count) => {
  for (let i = 0; i < count; i++)
    book.run({ id: null, author: 1 + i % 3, title: `Book ${i}`, price: i / 4, cover: Buffer.alloc(i % 5, i) });
  return count;
});
show('transaction', () => fill(500));
show('rolled back', () => db.transaction(() => { fill(10); throw new RangeError('no'); })());
show('immediate', () => fill.immediate(1));
show('count', () => db.prepare('SELECT count(*) FROM book').pluck().get());
show('raw', () => db.prepare('SELECT id, title, price, cover FROM book ORDER BY id LIMIT 3').raw().all());
show('expand', () => db.prepare('SELECT * FROM book JOIN author ON author.id = book.author ORDER BY book.id').expand().get());
show('columns', () => db.prepare('SELECT id, title AS t, price * 2 FROM book').columns());
show('iterate', () => {
  let sum = 0;
  for (const row of db.prepare('SELECT price FROM book ORDER BY id').iterate()) {
    sum += row.price;
    if (sum > 1000) break;
  }
  return sum;
});
show('busy with a query', () => {
  for (const row of db.prepare('SELECT id FROM book').iterate()) author.run(`x${row.id}`);
});
show('bigint', () => [db.prepare('SELECT 9007199254740993 AS b, 1 AS a').safeIntegers().get(),
  db.prepare('SELECT ? AS b').safeIntegers().get(2n ** 63n - 1n)]);
show('int too big', () => db.prepare('SELECT 9007199254740993').get());
show('types', () => db.prepare('SELECT typeof(?) AS i, typeof(?) AS r, typeof(?) AS t, typeof(?) AS b, typeof(?) AS n')
  .get(1n, 1, 'x', Buffer.from('x'), null));

db.function('double', (x) => x * 2);
db.function('varargs', { varargs: true, deterministic: true }, (...all) => all.join('-'));
db.function('fails', () => { throw new TypeError('from a function'); });
db.aggregate('product', { start: 1, step: (total, next) => total * next });
db.aggregate('running', { start: () => [], step: (a, n) => { a.push(n); }, inverse: (a) => { a.shift(); },
  result: (a) => a.join('+') });
db.table('numbers', { columns: ['n'], parameters: ['below'],
  *rows(below) { for (let n = 0; n < below; n++) yield [n]; } });
show('function', () => db.prepare("SELECT double(21), varargs(1, 'a', 2.5)").raw().get());
show('function that throws', () => db.prepare('SELECT fails()').get());
show('aggregate', () => db.prepare('SELECT product(id) FROM author WHERE id <= 3').pluck().get());
show('window', () => db.prepare(`SELECT running(id) OVER (ORDER BY id ROWS 1 PRECEDING) FROM author
  WHERE id <= 3`).pluck().all());
show('table function', () => db.prepare('SELECT sum(n) FROM numbers(10) WHERE n > 3').pluck().get());

show('json', () => db.prepare(`SELECT json_group_array(json_object('id', id, 'n', name)) FROM author
  WHERE id < 3`).pluck().get());
show('cte', () => db.prepare(`WITH RECURSIVE f(a, b) AS (VALUES(0, 1) UNION ALL SELECT b, a + b FROM f LIMIT 20)
  SELECT max(a) FROM f`).pluck().get());
show('upsert', () => db.prepare(`INSERT INTO author(id, name) VALUES (1, 'V. Woolf')
  ON CONFLICT(id) DO UPDATE SET name = excluded.name RETURNING *`).all());
show('cascade', () => [db.prepare('DELETE FROM author WHERE id = 2').run().changes,
  db.prepare('SELECT count(*) FROM book WHERE author = 2').pluck().get()]);
show('bind for ever', () => db.prepare('SELECT name FROM author WHERE id = ?').bind(3).get());
show('default safe integers', () => { db.defaultSafeIntegers(true); const v = db.prepare('SELECT 5').pluck().get();
  db.defaultSafeIntegers(false); return v; });

const image = db.serialize();
show('serialize', () => {
  const copy = open(image);
  const found = [copy.memory, copy.prepare('SELECT count(*), sum(price) FROM book').raw().get(),
    copy.pragma('integrity_check', { simple: true })];
  copy.close();
  return found;
});
show('readonly', () => {
  const reader = open(path.join(folder, 'app.db'), { readonly: true });
  try {
    return [reader.readonly, reader.prepare('SELECT count(*) FROM book').pluck().get(),
      reader.prepare('DELETE FROM book').run()];
  } finally { reader.close(); }
});
show('must exist', () => open(path.join(folder, 'none.db'), { fileMustExist: true }));
show('second connection', () => {
  const other = open(path.join(folder, 'app.db'), { timeout: 20 });
  db.exec('BEGIN IMMEDIATE');
  try { return other.prepare("INSERT INTO author(name) VALUES ('late')").run(); } finally {
    db.exec('ROLLBACK');
    other.close();
  }
});

db.backup(path.join(folder, 'copy.db')).then((done) => {
  show('backup', () => done.remainingPages);
  const copy = open(path.join(folder, 'copy.db'));
  show('copied', () => copy.prepare('SELECT count(*) FROM book').pluck().get());
  copy.close();
  show('open', () => [db.open, db.inTransaction, db.name.endsWith('app.db')]);
  db.close();
  show('closed', () => [db.open, db.prepare('SELECT 1')]);
});
