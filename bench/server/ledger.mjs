// ledger.mjs URL SECONDS -- @libsql/client on a ledger: points, histories, transfers; then the audit.
//
// Prints one JSON line a workload: {"load", "per_second"}.  Wrong books, or a wrong answer, end it with an error.
import { readFileSync } from "node:fs";
import { createClient } from "@libsql/client";

const [url, seconds] = process.argv.slice(2);
const ACCOUNTS = 10000, SEEDED = 40000;
const client = createClient({ url, concurrency: 20 });
let transfers = 0, next = 0;

async function run(load, workers, step) {
    let count = 0;
    const started = performance.now(), end = started + 1000 * Number(seconds);
    await Promise.all([...Array(workers)].map(async () => {
        while (performance.now() < end) {
            if (await step(next++ * 7919 % ACCOUNTS + 1)) count++;
        }
    }));
    console.log(JSON.stringify({ load, per_second: count / ((performance.now() - started) / 1000) }));
}

async function point(id) {
    const { rows } = await client.execute({ sql: "SELECT debits - credits, id FROM account WHERE id = ?", args: [id] });
    if (rows.length !== 1 || rows[0].id !== id) throw new Error(`account ${id} is ${JSON.stringify(rows)}`);
    return true;
}

async function history(id) {
    const { rows } = await client.execute({
        sql: "SELECT * FROM (SELECT id, credit, amount FROM transfer WHERE debit = ?1 ORDER BY id DESC LIMIT 20) UNION ALL "
            + "SELECT * FROM (SELECT id, debit, amount FROM transfer WHERE credit = ?1 ORDER BY id DESC LIMIT 20)",
        args: [id],
    });
    if (rows.length > 40) throw new Error(`a history of ${rows.length} rows`);
    return true;
}

/* True: done.  Refused as busy: nothing was done. */
async function transfer(id) {
    const other = id * 31 % ACCOUNTS + 1, amount = id % 89 + 1;
    try {
        await client.batch([
            { sql: "UPDATE account SET debits = debits + ? WHERE id = ?", args: [amount, id] },
            { sql: "UPDATE account SET credits = credits + ? WHERE id = ?", args: [amount, other] },
            { sql: "INSERT INTO transfer(debit, credit, amount) VALUES(?, ?, ?)", args: [id, other, amount] },
        ], "write");
    } catch (error) {
        if (error.code !== "SQLITE_BUSY") throw error;
        return false;
    }
    transfers++;
    return true;
}

await client.executeMultiple(readFileSync(new URL("ledger.sql", import.meta.url), "utf8"));
for (const workers of [1, 16]) {
    await run(`point_${workers}`, workers, point);
    await run(`history_${workers}`, workers, history);
    await run(`transfer_${workers}`, workers, transfer);
}
const { rows: [books] } = await client.execute("SELECT (SELECT sum(debits) - sum(credits) FROM account), "
    + "(SELECT sum(debits) FROM account) - (SELECT sum(amount) FROM transfer), (SELECT count(*) FROM transfer)");
if (books[0] !== 0 || books[1] !== 0 || books[2] !== SEEDED + transfers)
    throw new Error(`the books are wrong: ${JSON.stringify(books)}, ${transfers} transfers`);
client.close();
process.exit(0);
