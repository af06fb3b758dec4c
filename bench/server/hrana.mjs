// hrana.mjs URL SECONDS -- @libsql/client's load on a server: point reads, durable inserts, many writers.
//
// Prints one JSON line a workload: {"load", "per_second", "p50_ms", "p99_ms", "longest_ms", "busy"}; busy: how
// many were refused because another wrote.  A wrong answer, or a row too few or too many, ends it with an error.
// Run it from a folder where @libsql/client is installed (tests/clients/libsql/run.py makes one).
import { createClient } from "@libsql/client";

const [url, seconds] = process.argv.slice(2);
const ROWS = 10000;
const client = createClient({ url, concurrency: 50 });
let done = 0;

async function run(load, workers, step) {
    let errors = 0;
    const times = [], end = performance.now() + 1000 * Number(seconds || 3);
    const started = performance.now();
    await Promise.all([...Array(workers).keys()].map(async (worker) => {
        for (let i = 0; performance.now() < end; i++) {
            const from = performance.now();
            try {
                await step(worker, i);
                times.push(performance.now() - from);
            } catch (error) {
                if (error.code !== "SQLITE_BUSY") throw error;
                errors++;
            }
        }
    }));
    const took = (performance.now() - started) / 1000;
    times.sort((a, b) => a - b);
    done += times.length;
    const at = (part) => Number(times[Math.min(times.length - 1, Math.floor(part * times.length))].toFixed(3));
    console.log(JSON.stringify({
        load, per_second: Math.round(times.length / took), p50_ms: at(0.5), p99_ms: at(0.99), longest_ms: at(1), busy: errors,
    }));
}

await client.execute("DROP TABLE IF EXISTS b");
await client.execute("CREATE TABLE b(id INTEGER PRIMARY KEY, v TEXT)");
await client.batch([...Array(ROWS).keys()].map((i) => ({ sql: "INSERT INTO b VALUES(?, ?)", args: [i, `value ${i}`] })), "write");
async function read(i) {
    const { rows } = await client.execute({ sql: "SELECT v FROM b WHERE id = ?", args: [BigInt(i % ROWS)] });
    if (rows.length !== 1 || rows[0].v !== `value ${i % ROWS}`) throw new Error(`row ${i % ROWS} is ${JSON.stringify(rows)}`);
}
await run("point reads, 1 at a time", 1, (w, i) => read(i * 7919));
await run("point reads, 16 at a time", 16, (w, i) => read(w * 104729 + i * 7919));
await client.execute("DROP TABLE IF EXISTS w");
await client.execute("CREATE TABLE w(id INTEGER PRIMARY KEY, v TEXT)");
const insert = (w, i) => client.execute({ sql: "INSERT INTO w(v) VALUES(?)", args: [`row ${w}.${i}`] });
done = 0;
await run("inserts, 1 at a time", 1, insert);
await run("inserts, 16 at a time", 16, insert);
await run("inserts, 50 at a time", 50, insert);
const { rows: [{ count }] } = await client.execute("SELECT count(*) AS count FROM w");
if (count !== done) throw new Error(`${count} rows after ${done} inserts`);
client.close();
process.exit(0);
