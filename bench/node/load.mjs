// load.mjs -- one round of the same statements on one engine under node:
//   node load.mjs turso|sqlite3-api ADDON ROWS
// ADDON is better-sqlite3's, which runs on whatever libsqlite3.so.0 the loader finds; Turso has its
// own package.  Prints {"work": {"seconds": s, "answer": text}} as JSON.
import { createRequire } from 'node:module';

const [engine, addon, rowsText] = process.argv.slice(2);
const rows = Number(rowsText);
const require = createRequire(process.env.MODULES + '/');
// An await costs the same whether there is something to wait for or not: both sides pay it.
const open = async () => {
  if (engine === 'turso') return (await import(require.resolve('@tursodatabase/database'))).connect(':memory:');
  const Database = require('better-sqlite3');
  return new Database(':memory:', { nativeBinding: addon });
};

let seed = 1n;
const random = (below) => {
  seed = (seed * 6364136223846793005n + 1442695040888963407n) & ((1n << 64n) - 1n);
  return Number((seed >> 33n) % BigInt(below));
};

const db = await open();
await db.exec('CREATE TABLE t(a INTEGER PRIMARY KEY, b INT, c TEXT, d REAL, e INT)');
await db.exec('CREATE TABLE s(k INTEGER PRIMARY KEY, v INT)');

const result = {};
const work = async (name, run) => {
  const begin = process.hrtime.bigint();
  const answer = await run();
  result[name] = { seconds: Number(process.hrtime.bigint() - begin) / 1e9, answer: JSON.stringify(answer) };
};

await work('insert', async () => {
  await db.exec('BEGIN');
  const insert = db.prepare('INSERT INTO t VALUES(?,?,?,?,?)');
  for (let i = 1; i <= rows; i++) await insert.run(i, random(100), 'text' + random(1000), random(100000) + 0.5, random(10000));
  const small = db.prepare('INSERT INTO s VALUES(?,?)');
  for (let i = 0; i < 10000; i++) await small.run(i, random(1000));
  await db.exec('COMMIT');
  return (await db.prepare('SELECT count(*) AS n, sum(e) AS s FROM t').get());
});

await work('create_index', async () => {
  await db.exec('CREATE INDEX tb ON t(b, e)');
  return 0;
});

await work('point', async () => {
  const get = db.prepare('SELECT c, e FROM t WHERE a=?');
  let sum = 0;
  for (let i = 0; i < 50000; i++) sum += (await get.get(1 + random(rows))).e;
  return sum;
});

await work('by_index', async () => {
  const all = db.prepare('SELECT e FROM t WHERE b=? ORDER BY e LIMIT 10');
  let sum = 0;
  for (let i = 0; i < 10000; i++) for (const row of await all.all(random(100))) sum += row.e;
  return sum;
});

const questions = {
  filtered_count: 'SELECT count(*) AS x FROM t WHERE d < 50000 AND e > 5000',
  sum: 'SELECT sum(e) AS x FROM t WHERE c <> \'text7\'',
  group: 'SELECT c, count(*) AS n, sum(e) AS x FROM t GROUP BY c ORDER BY c',
  top_20: 'SELECT a FROM t ORDER BY d, a LIMIT 20',
  join: 'SELECT sum(s.v) AS x FROM t JOIN s ON s.k = t.e',
};
for (const [name, sql] of Object.entries(questions)) {
  await work(name, async () => {
    const ask = db.prepare(sql);
    let last;
    for (let i = 0; i < 3; i++) last = await ask.all();
    return last;
  });
}

await work('update', async () => {
  await db.exec('BEGIN');
  const update = db.prepare('UPDATE t SET d = d + 1 WHERE a=?');
  for (let i = 0; i < 20000; i++) await update.run(1 + random(rows));
  await db.exec('COMMIT');
  return (await db.prepare('SELECT sum(d) AS s FROM t').get());
});

console.log(JSON.stringify(result));
