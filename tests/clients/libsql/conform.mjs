// conform.mjs URL [TOKEN] -- @libsql/client against a server, over whatever carrier the URL names.
//
// Method: each test makes its own tables, and says what SQLite and libSQL promise.  Prints TAP.
import { createClient, LibsqlError, LibsqlBatchError } from "@libsql/client";
import assert from "node:assert/strict";

const [url, authToken] = process.argv.slice(2);
const options = (more = {}) => ({ url, authToken: authToken || undefined, ...more });
const tests = [];
const test = (name, run) => tests.push([name, run]);
const client = createClient(options());

async function codeOf(promise) {
    try {
        await promise;
    } catch (error) {
        assert(error instanceof LibsqlError, `${error}`);
        return error;
    }
    throw new Error("no error was thrown");
}

async function table(name, columns) {
    await client.execute(`DROP TABLE IF EXISTS ${name}`);
    await client.execute(`CREATE TABLE ${name}(${columns})`);
}

// ---- values ----

test("every type comes back", async () => {
    const { rows, columns, columnTypes } = await client.execute(
        "SELECT NULL AS n, 42 AS i, -1.5 AS r, 'text' AS t, x'00ff10' AS b");
    assert.deepEqual(columns, ["n", "i", "r", "t", "b"]);
    assert.equal(columnTypes.length, 5);
    const row = rows[0];
    assert.equal(row.n, null);
    assert.equal(row.i, 42);
    assert.equal(row.r, -1.5);
    assert.equal(row.t, "text");
    assert(row.b instanceof ArrayBuffer);
    assert.deepEqual([...new Uint8Array(row.b)], [0, 255, 16]);
    assert.equal(row[1], 42);
    assert.equal(row.length, 5);
});

test("every type goes in", async () => {
    const args = [null, 7, 7.25, 9007199254740993n, true, false, "tëxt", new Uint8Array([1, 0, 2]),
        new Uint8Array([9]).buffer, new Date(1700000000000)];
    const { rows } = await client.execute({
        sql: `SELECT ${args.map((_, i) => `typeof(?${i + 1}), quote(?${i + 1})`).join(",")}`, args,
    });
    assert.deepEqual([...Array(20).keys()].map((i) => rows[0][i]), [
        "null", "NULL", "real", "7.0", "real", "7.25", "integer", "9007199254740993",
        "integer", "1", "integer", "0", "text", "'tëxt'", "blob", "X'010002'", "blob", "X'09'",
        "real", "1700000000000.0"]);
});

test("column affinity makes integers", async () => {
    await table("aff", "i INTEGER, r REAL, t TEXT, n NUMERIC, b BLOB");
    await client.execute({ sql: "INSERT INTO aff VALUES(?,?,?,?,?)", args: [1, 2, 3, 4, 5] });
    const { rows } = await client.execute(
        "SELECT typeof(i), typeof(r), typeof(t), typeof(n), typeof(b) FROM aff");
    assert.deepEqual([0, 1, 2, 3, 4].map((i) => rows[0][i]),
        ["integer", "real", "text", "integer", "real"]);
});

test("64-bit integers: number mode refuses, bigint and string are exact", async () => {
    const sql = "SELECT 9223372036854775807 AS a, -9223372036854775808 AS b, 1 AS c";
    await assert.rejects(client.execute(sql), RangeError);
    const big = createClient(options({ intMode: "bigint" }));
    let row = (await big.execute(sql)).rows[0];
    assert.deepEqual([row.a, row.b, row.c], [9223372036854775807n, -9223372036854775808n, 1n]);
    for (const value of [9223372036854775807n, -9223372036854775808n, 0n, -1n]) {
        row = (await big.execute({ sql: "SELECT ? AS v, typeof(?) AS t", args: [value, value] })).rows[0];
        assert.deepEqual([row.v, row.t], [value, "integer"]);
    }
    big.close();
    const text = createClient(options({ intMode: "string" }));
    row = (await text.execute(sql)).rows[0];
    assert.deepEqual([row.a, row.b, row.c], ["9223372036854775807", "-9223372036854775808", "1"]);
    text.close();
});

test("reals survive", async () => {
    const values = [0.1, -0, 1e308, 5e-324, 1 / 3, 123456789.123456789, 2 ** 53, -1e-7];
    for (const value of values) {
        const { rows } = await client.execute({ sql: "SELECT ? AS v", args: [value] });
        assert(Object.is(rows[0].v, value) || (value === 0 && rows[0].v === 0), `${value}`);
    }
    const inf = (await client.execute("SELECT 9e999 AS p, -9e999 AS m")).rows[0];
    assert.deepEqual([inf.p, inf.m], [Infinity, -Infinity]);
});

test("unicode, NUL and quotes in text", async () => {
    const texts = ["", "naïve", "日本語", "🦆🐘", "a\u0000b", "\"'\\\n\t\r", "\u2028\u2029", "\u{10ffff}"];
    await table("uni", "k INTEGER PRIMARY KEY, v TEXT");
    for (let i = 0; i < texts.length; i++)
        await client.execute({ sql: "INSERT INTO uni VALUES(?, ?)", args: [i, texts[i]] });
    const { rows } = await client.execute("SELECT v FROM uni ORDER BY k");
    assert.deepEqual(rows.map((r) => r.v), texts);
});

test("blobs of all lengths", async () => {
    for (const length of [0, 1, 2, 3, 4, 255, 256, 65537]) {
        const bytes = new Uint8Array(length).map((_, i) => i * 7);
        const { rows } = await client.execute({ sql: "SELECT ? AS b, length(?) AS n", args: [bytes, bytes] });
        assert.equal(rows[0].n, length);
        assert.deepEqual(new Uint8Array(rows[0].b), bytes);
    }
    const { rows } = await client.execute("SELECT zeroblob(10) AS z");
    assert.deepEqual(new Uint8Array(rows[0].z), new Uint8Array(10));
});

test("a value of 1 MB", async () => {
    await table("large", "k INTEGER PRIMARY KEY, t TEXT, b BLOB");
    const text = "é".repeat(1 << 19), blob = new Uint8Array(1 << 20).map((_, i) => i ^ (i >> 8));
    await client.execute({ sql: "INSERT INTO large VALUES(1, ?, ?)", args: [text, blob] });
    const { rows } = await client.execute("SELECT t, b, length(t) AS n FROM large");
    assert.equal(rows[0].n, 1 << 19);
    assert.equal(rows[0].t, text);
    assert.deepEqual(new Uint8Array(rows[0].b), blob);
});

test("100,000 rows", async () => {
    const { rows } = await client.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) " +
        "SELECT i, 'row ' || i AS t FROM n");
    assert.equal(rows.length, 100000);
    for (let i = 0; i < rows.length; i++) {
        if (rows[i].i !== i + 1 || rows[i].t !== `row ${i + 1}`) assert.fail(`row ${i}`);
    }
});

// ---- statements ----

test("named arguments, with any prefix or none", async () => {
    const sql = "SELECT :a AS a, @b AS b, $c AS c";
    for (const args of [{ a: 1, b: "x", c: null }, { ":a": 1, "@b": "x", "$c": null }]) {
        const row = (await client.execute({ sql, args })).rows[0];
        assert.deepEqual([row.a, row.b, row.c], [1, "x", null]);
    }
});

test("positional and numbered arguments", async () => {
    let row = (await client.execute({ sql: "SELECT ?2 AS b, ?1 AS a", args: ["one", "two"] })).rows[0];
    assert.deepEqual([row.a, row.b], ["one", "two"]);
    row = (await client.execute({ sql: "SELECT ?, ?", args: ["x", "y"] })).rows[0];
    assert.deepEqual([row[0], row[1]], ["x", "y"]);
    row = (await client.execute("SELECT 1 AS one", [])).rows[0];
    assert.equal(row.one, 1);
});

test("wrong arguments are errors", async () => {
    for (const [sql, args] of [["SELECT ?", []], ["SELECT ?", [1, 2]], ["SELECT :a", { b: 1 }], ["SELECT 1", [1]]])
        assert.equal((await codeOf(client.execute({ sql, args }))).code, "ARGS_INVALID");
});

test("rowsAffected and lastInsertRowid", async () => {
    await table("ra", "id INTEGER PRIMARY KEY, v");
    let rs = await client.execute("INSERT INTO ra(v) VALUES(1),(2),(3)");
    assert.deepEqual([rs.rowsAffected, rs.lastInsertRowid], [3, 3n]);
    rs = await client.execute("UPDATE ra SET v = v + 1 WHERE id > 1");
    assert.deepEqual([rs.rowsAffected, rs.lastInsertRowid], [2, undefined]);
    rs = await client.execute("SELECT * FROM ra");
    assert.deepEqual([rs.rowsAffected, rs.lastInsertRowid], [0, undefined]);
    rs = await client.execute("INSERT INTO ra(id, v) VALUES(9223372036854775807, 0)");
    assert.equal(rs.lastInsertRowid, 9223372036854775807n);
    rs = await client.execute("REPLACE INTO ra(id, v) VALUES(2, 'r')");
    assert.deepEqual([rs.rowsAffected, rs.lastInsertRowid], [1, 2n]);
    rs = await client.execute("WITH x(a) AS (SELECT 40) INSERT INTO ra(id) SELECT a FROM x");
    assert.deepEqual([rs.rowsAffected, rs.lastInsertRowid], [1, 40n]);
    rs = await client.execute("DELETE FROM ra");
    assert.deepEqual([rs.rowsAffected, rs.lastInsertRowid], [5, undefined]);
    rs = await client.execute("CREATE TABLE IF NOT EXISTS ra2(a)");
    assert.deepEqual([rs.rowsAffected, rs.columns.length], [0, 0]);
});

test("RETURNING", async () => {
    await table("ret", "id INTEGER PRIMARY KEY, v TEXT");
    const rs = await client.execute("INSERT INTO ret(v) VALUES('a'),('b') RETURNING id, upper(v) AS u");
    assert.deepEqual(rs.rows.map((r) => [r.id, r.u]), [[1, "A"], [2, "B"]]);
    assert.deepEqual([rs.rowsAffected, rs.lastInsertRowid], [2, 2n]);
});

test("column names and declared types", async () => {
    await table("ct", "a INTEGER PRIMARY KEY, b VARCHAR(10), c");
    const rs = await client.execute("SELECT a, b, c, a + 1, b AS bee FROM ct");
    assert.deepEqual(rs.columns, ["a", "b", "c", "a + 1", "bee"]);
    assert.deepEqual(rs.columnTypes, ["INTEGER", "VARCHAR(10)", "", "", "VARCHAR(10)"]);
});

test("nothing and too much are no statement", async () => {
    assert.equal((await codeOf(client.execute(""))).code, "SQL_NO_STATEMENT");
    assert.equal((await codeOf(client.execute("-- nothing"))).code, "SQL_NO_STATEMENT");
    assert.equal((await codeOf(client.execute("SELECT 1; SELECT 2"))).code, "SQL_MANY_STATEMENTS");
    assert.equal((await client.execute("SELECT 1 AS a; -- end\n;")).rows[0].a, 1);
});

test("errors carry SQLite's names", async () => {
    await table("er", "a INTEGER PRIMARY KEY, b UNIQUE, c NOT NULL DEFAULT 1, CHECK(b <> 'bad')");
    await client.execute("INSERT INTO er VALUES(1, 'x', 1)");
    let error = await codeOf(client.execute("INSERT INTO er VALUES(1, 'y', 1)"));
    assert.equal(error.code, "SQLITE_CONSTRAINT");
    error = await codeOf(client.execute("INSERT INTO er VALUES(2, 'x', 1)"));
    assert.equal(error.code, "SQLITE_CONSTRAINT");
    assert.match(error.message, /SQLite error: UNIQUE constraint failed: er\.b/);
    assert.match((await codeOf(client.execute("INSERT INTO er VALUES(2, 'y', NULL)"))).message,
        /NOT NULL constraint failed: er\.c/);
    assert.match((await codeOf(client.execute("INSERT INTO er VALUES(2, 'bad', 1)"))).message,
        /CHECK constraint failed/);
    assert.match((await codeOf(client.execute("SELECT * FROM missing"))).code,
        /^(SQLITE_UNKNOWN|SQL_INPUT_ERROR)$/);
    assert.match((await codeOf(client.execute("SELEC 1"))).code, /^(SQL_PARSE_ERROR|SQL_INPUT_ERROR)$/);
    assert.match((await codeOf(client.execute("SELECT nope FROM er"))).message, /no such column: nope/);
    assert.equal((await codeOf(client.execute("SELECT abs(-9223372036854775808)"))).code, "SQLITE_UNKNOWN");
});

// ---- batches ----

test("a batch is a transaction", async () => {
    await table("ba", "a INTEGER PRIMARY KEY");
    const results = await client.batch(["INSERT INTO ba VALUES(1)",
        { sql: "INSERT INTO ba VALUES(?)", args: [2] }, ["INSERT INTO ba VALUES(:x)", { x: 3 }],
        "SELECT count(*) AS n FROM ba"], "write");
    assert.deepEqual(results.map((r) => r.rowsAffected), [1, 1, 1, 0]);
    assert.equal(results[3].rows[0].n, 3);
    const error = await codeOf(client.batch(["INSERT INTO ba VALUES(4)", "INSERT INTO ba VALUES(1)",
        "INSERT INTO ba VALUES(5)"], "write"));
    assert(error instanceof LibsqlBatchError);
    assert.deepEqual([error.code, error.statementIndex], ["SQLITE_CONSTRAINT", 1]);
    assert.equal((await client.execute("SELECT count(*) AS n FROM ba")).rows[0].n, 3);
});

test("a batch that makes a table and uses it", async () => {
    await client.execute("DROP TABLE IF EXISTS fresh");
    const results = await client.batch(["CREATE TABLE fresh(a)", "INSERT INTO fresh VALUES(1)",
        "SELECT a FROM fresh"], "write");
    assert.equal(results[2].rows[0].a, 1);
    assert.deepEqual(await client.batch([], "deferred"), []);
});

test("a batch in every mode", async () => {
    for (const mode of ["deferred", "read", "write"])
        assert.equal((await client.batch(["SELECT 1 AS a"], mode))[0].rows[0].a, 1);
    await table("ro", "a");
    const error = await codeOf(client.batch(["INSERT INTO ro VALUES(1)"], "read"));
    assert.equal(error.code, "SQLITE_READONLY");
    await client.batch(["INSERT INTO ro VALUES(1)"], "deferred");
});

test("migrate switches foreign keys off", async () => {
    await client.migrate(["DROP TABLE IF EXISTS mc", "DROP TABLE IF EXISTS mp",
        "CREATE TABLE mp(id INTEGER PRIMARY KEY)",
        "CREATE TABLE mc(p INTEGER REFERENCES mp(id))", "INSERT INTO mc VALUES(77)"]);
    assert.equal((await client.execute("SELECT count(*) AS n FROM mc")).rows[0].n, 1);
    await client.execute("DROP TABLE mc");
});

test("executeMultiple stops at the first error", async () => {
    await client.executeMultiple("DROP TABLE IF EXISTS mu; CREATE TABLE mu(a); " +
        "INSERT INTO mu VALUES('a;b'); -- c;d\n INSERT INTO mu VALUES(2);");
    assert.equal((await client.execute("SELECT count(*) AS n FROM mu")).rows[0].n, 2);
    await codeOf(client.executeMultiple("INSERT INTO mu VALUES(3); INSERT INTO nope VALUES(1); INSERT INTO mu VALUES(4)"));
    assert.equal((await client.execute("SELECT count(*) AS n FROM mu")).rows[0].n, 3);
    await codeOf(client.executeMultiple("INSERT INTO mu VALUES(5); INSERT INTO mu VALUES("));
    assert.equal((await client.execute("SELECT count(*) AS n FROM mu")).rows[0].n, 4);
});

// ---- transactions ----

test("an interactive transaction commits", async () => {
    await table("tx", "a INTEGER PRIMARY KEY, v");
    const tx = await client.transaction("write");
    const rs = await tx.execute({ sql: "INSERT INTO tx(v) VALUES(?)", args: ["one"] });
    assert.equal(rs.lastInsertRowid, 1n);
    assert.equal((await tx.execute("SELECT count(*) AS n FROM tx")).rows[0].n, 1);
    assert.equal((await client.execute("SELECT count(*) AS n FROM tx")).rows[0].n, 0);
    await tx.batch(["INSERT INTO tx(v) VALUES('two')", "INSERT INTO tx(v) VALUES('three')"]);
    await tx.executeMultiple("INSERT INTO tx(v) VALUES('four'); INSERT INTO tx(v) VALUES('five')");
    await tx.commit();
    assert(tx.closed);
    assert.equal((await client.execute("SELECT count(*) AS n FROM tx")).rows[0].n, 5);
});

test("rollback and close undo", async () => {
    await table("tr", "a INTEGER PRIMARY KEY");
    let tx = await client.transaction("write");
    await tx.execute("INSERT INTO tr VALUES(1)");
    await tx.rollback();
    tx = await client.transaction();
    await tx.execute("INSERT INTO tr VALUES(2)");
    tx.close();
    tx = await client.transaction("deferred");
    await tx.rollback();
    for (let i = 0; ; i++) {                // close() does not wait.
        if ((await client.execute("SELECT count(*) AS n FROM tr")).rows[0].n === 0) break;
        assert(i < 100);
    }
});

test("an error inside a transaction leaves it usable", async () => {
    await table("te", "a INTEGER PRIMARY KEY");
    const tx = await client.transaction("write");
    await tx.execute("INSERT INTO te VALUES(1)");
    assert.equal((await codeOf(tx.execute("INSERT INTO te VALUES(1)"))).code, "SQLITE_CONSTRAINT");
    await codeOf(tx.batch(["INSERT INTO te VALUES(2)", "INSERT INTO te VALUES(1)"]));
    await tx.execute("INSERT INTO te VALUES(3)");
    await tx.commit();
    assert.deepEqual((await client.execute("SELECT a FROM te ORDER BY a")).rows.map((r) => r.a), [1, 2, 3]);
});

test("a read transaction keeps its snapshot and may not write", async () => {
    await table("rd", "a");
    await client.execute("INSERT INTO rd VALUES(1)");
    const tx = await client.transaction("read");
    assert.equal((await tx.execute("SELECT count(*) AS n FROM rd")).rows[0].n, 1);
    await client.execute("INSERT INTO rd VALUES(2)");
    assert.equal((await tx.execute("SELECT count(*) AS n FROM rd")).rows[0].n, 1);
    assert.equal((await codeOf(tx.execute("INSERT INTO rd VALUES(3)"))).code, "SQLITE_READONLY");
    await tx.rollback();
    assert.equal((await client.execute("SELECT count(*) AS n FROM rd")).rows[0].n, 2);
    await client.execute("INSERT INTO rd VALUES(3)");
});

test("two transactions at once", async () => {
    await table("tw", "a INTEGER PRIMARY KEY, v");
    await client.execute("INSERT INTO tw VALUES(1, 0), (2, 0)");
    const one = await client.transaction("write"), two = await client.transaction("write");
    await one.execute("UPDATE tw SET v = 1 WHERE a = 1");
    await two.execute("UPDATE tw SET v = 2 WHERE a = 2");
    await one.commit();
    await two.commit();
    assert.deepEqual((await client.execute("SELECT v FROM tw ORDER BY a")).rows.map((r) => r.v), [1, 2]);
});

test("one waits for the row of another", async () => {
    await table("wa", "a INTEGER PRIMARY KEY, v");
    await client.execute("INSERT INTO wa VALUES(1, 0)");
    const tx = await client.transaction("write");
    await tx.execute("UPDATE wa SET v = v + 1");
    const waiting = client.execute("UPDATE wa SET v = v + 10");
    await tx.commit();
    await waiting;
    assert.equal((await client.execute("SELECT v FROM wa")).rows[0].v, 11);
});

test("many calls at once", async () => {
    await table("co", "a INTEGER PRIMARY KEY, v");
    await Promise.all([...Array(200).keys()].map((i) =>
        client.execute({ sql: "INSERT INTO co(a, v) VALUES(?, ?)", args: [i, `v${i}`] })));
    const answers = await Promise.all([...Array(200).keys()].map((i) =>
        client.execute({ sql: "SELECT v FROM co WHERE a = ?", args: [i] })));
    answers.forEach((rs, i) => assert.equal(rs.rows[0].v, `v${i}`));
});

test("clients do not see each other's counters and temp tables", async () => {
    await table("cs", "a INTEGER PRIMARY KEY");
    await client.execute("INSERT INTO cs VALUES(5)");
    const other = createClient(options());
    const row = (await other.execute("SELECT last_insert_rowid() AS r, changes() AS c, total_changes() AS t")).rows[0];
    assert.deepEqual([row.r, row.c, row.t], [0, 0, 0]);
    await other.execute("CREATE TEMP TABLE secret(a)");
    await codeOf(client.execute("SELECT * FROM secret"));
    await other.execute("PRAGMA foreign_keys = ON");
    assert.equal((await client.execute("PRAGMA foreign_keys")).rows[0][0], 0);
    other.close();
});

test("a closed client refuses", async () => {
    const other = createClient(options());
    await other.execute("SELECT 1");
    other.close();
    assert.match((await codeOf(other.execute("SELECT 1"))).code, /^(CLIENT_CLOSED|UNKNOWN)$/);
});

if (authToken) {
    test("a wrong token is told so", async () => {
        const other = createClient({ url, authToken: "wrong" });
        assert.match((await codeOf(other.execute("SELECT 1"))).code, /^AUTH_/);
        other.close();
        const none = createClient({ url });
        assert.match((await codeOf(none.execute("SELECT 1"))).code, /^AUTH_/);
        none.close();
    });
}

// ---- run ----

const only = process.env.ONLY ? new RegExp(process.env.ONLY) : null;
let number = 0, failed = 0;
for (const [name, run] of tests) {
    if (only && !only.test(name)) continue;
    number++;
    try {
        await Promise.race([run(), new Promise((_, no) =>
            setTimeout(() => no(new Error("takes longer than 60 s")), 60000).unref())]);
        console.log(`ok ${number} - ${name}`);
    } catch (error) {
        failed++;
        console.log(`not ok ${number} - ${name}`);
        console.log(`# ${(error.stack || error).toString().replaceAll("\n", "\n# ")}`);
    }
}
client.close();
console.log(`1..${number}`);
process.exit(failed > 0 ? 1 : 0);
