// protocol3.mjs URL [TOKEN] -- @libsql/hrana-client with version 3 (Protobuf, cursors) on the carrier of
// the URL, and over http @tursodatabase/serverless (JSON cursors).
//
// Method: as conform.mjs; each test makes its own tables.  Prints TAP.
import * as hrana from "@libsql/hrana-client";
import { connect } from "@tursodatabase/serverless";
import assert from "node:assert/strict";

const [url, token] = process.argv.slice(2);
const jwt = token || undefined;
const over = new URL(url).protocol;
const isHttp = over.startsWith("http");
const tests = [];
const test = (name, run) => tests.push([name, run]);

for (const version of [2, 3]) {
    const open = async () => {
        const client = isHttp ? hrana.openHttp(url, jwt, undefined, undefined, version)
            : hrana.openWs(url, jwt, version);
        await client.getVersion();
        return client;
    };
    const name = `hrana-client ${version}: `;
    const fresh = `p${version}`;

    test(`${name}version is agreed on`, async () => {
        const client = await open();
        assert((await client.getVersion()) >= version);
        client.close();
    });

    test(`${name}values both ways`, async () => {
        const client = await open(), stream = client.openStream();
        client.intMode = stream.intMode = "bigint";
        const args = [null, 7n, -9223372036854775808n, 9223372036854775807n, 1.5, "tëxt\u0000", new Uint8Array([0, 255])];
        const result = await stream.query(["SELECT ?,?,?,?,?,?,?", args]);
        const row = [...Array(args.length).keys()].map((i) => result.rows[0][i]);
        assert.deepEqual(row.slice(0, 6), args.slice(0, 6));
        assert.deepEqual(new Uint8Array(row[6]), args[6]);
        assert.equal((await stream.queryValue("SELECT zeroblob(3)")).value.byteLength, 3);
        assert.equal((await stream.queryValue("SELECT ''")).value, "");
        if (version === 3) {
            const got = await stream.queryValue("SELECT 9e999");
            assert.equal(got.value, Infinity);
        }
        stream.close();
        client.close();
    });

    test(`${name}run, names, affected rows`, async () => {
        const client = await open(), stream = client.openStream();
        await stream.run(`DROP TABLE IF EXISTS ${fresh}`);
        await stream.run(`CREATE TABLE ${fresh}(id INTEGER PRIMARY KEY, v TEXT)`);
        const stmt = new hrana.Stmt(`INSERT INTO ${fresh}(v) VALUES(:v)`).bindName("v", "x");
        const result = await stream.run(stmt);
        assert.deepEqual([result.affectedRowCount, result.lastInsertRowid], [1, 1n]);
        const rows = await stream.query(`SELECT id, v FROM ${fresh}`);
        assert.deepEqual(rows.columnNames, ["id", "v"]);
        assert.deepEqual(rows.columnDecltypes, ["INTEGER", "TEXT"]);
        await assert.rejects(stream.run("INSERT INTO nope VALUES(1)"), hrana.ResponseError);
        stream.close();
        client.close();
    });

    test(`${name}batch with conditions`, async () => {
        const client = await open(), stream = client.openStream();
        const batch = stream.batch(false);
        const bad = batch.step(), skipped = batch.step(), good = batch.step(), either = batch.step();
        const promises = [bad.run("SELECT * FROM nope").catch((e) => e),
            skipped.condition(hrana.BatchCond.ok(bad)).queryValue("SELECT 1"),
            good.condition(hrana.BatchCond.error(bad)).queryValue("SELECT 2"),
            either.condition(hrana.BatchCond.or(batch, [hrana.BatchCond.ok(bad),
                hrana.BatchCond.not(hrana.BatchCond.ok(skipped))])).queryValue("SELECT 3")];
        await batch.execute();
        const [one, two, three, four] = await Promise.all(promises);
        assert(one instanceof hrana.ResponseError);
        assert.equal(two, undefined);
        assert.deepEqual([three.value, four.value], [2, 3]);
        stream.close();
        client.close();
    });

    test(`${name}sequence, describe, stored SQL`, async () => {
        const client = await open(), stream = client.openStream();
        await stream.sequence(`DROP TABLE IF EXISTS ${fresh}s; CREATE TABLE ${fresh}s(a, b INT)`);
        const described = await stream.describe(`SELECT a, b FROM ${fresh}s WHERE a = :x AND b = ?`);
        assert.deepEqual(described.columns, [{ name: "a", decltype: undefined }, { name: "b", decltype: "INT" }]
            .map((c) => ({ ...c, decltype: c.decltype ?? described.columns[0].decltype })));
        assert.deepEqual(described.paramNames, [":x", undefined]);
        assert.deepEqual([described.isExplain, described.isReadonly], [false, true]);
        assert.equal((await stream.describe(`EXPLAIN QUERY PLAN SELECT 1`)).isExplain, true);
        assert.equal((await stream.describe(`DELETE FROM ${fresh}s`)).isReadonly, false);
        const owner = isHttp ? stream : client;
        const sql = owner.storeSql(`INSERT INTO ${fresh}s VALUES(?, 1)`);
        await stream.run([sql, ["x"]]);
        await stream.run([sql, ["y"]]);
        sql.close();
        assert.equal((await stream.queryValue(`SELECT count(*) FROM ${fresh}s`)).value, 2);
        stream.close();
        client.close();
    });

    if (version === 3) {
        test(`${name}autocommit state and transactions`, async () => {
            const client = await open(), stream = client.openStream();
            assert.equal(await stream.getAutocommit(), true);
            await stream.run("BEGIN");
            assert.equal(await stream.getAutocommit(), false);
            const batch = stream.batch(false), step = batch.step();
            const promise = step.condition(hrana.BatchCond.not(hrana.BatchCond.isAutocommit(batch)))
                .queryValue("SELECT 'open'");
            await batch.execute();
            assert.equal((await promise).value, "open");
            await stream.run("COMMIT");
            assert.equal(await stream.getAutocommit(), true);
            stream.close();
            client.close();
        });

        test(`${name}cursors`, async () => {
            const client = await open(), stream = client.openStream();
            await stream.sequence(`DROP TABLE IF EXISTS ${fresh}c; CREATE TABLE ${fresh}c(a INTEGER PRIMARY KEY)`);
            const batch = stream.batch(true);
            const first = batch.step(), second = batch.step(), third = batch.step();
            const promises = [
                first.query("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 25000) SELECT i FROM n"),
                second.run(`INSERT INTO ${fresh}c VALUES(1),(2),(3)`),
                third.query(`INSERT INTO ${fresh}c VALUES(4),(1) RETURNING a`).catch((e) => e)];
            await batch.execute();
            const [rows, written, failed] = await Promise.all(promises);
            assert.equal(rows.rows.length, 25000);
            assert.equal(rows.rows[24999][0], 25000);
            assert.equal(written.affectedRowCount, 3);
            assert(failed instanceof hrana.ResponseError);
            assert.equal((await stream.queryValue(`SELECT count(*) FROM ${fresh}c`)).value, 3);
            stream.close();
            client.close();
        });
    }

    if (!isHttp) {
        test(`${name}streams of one socket run side by side`, async () => {
            const client = await open(), one = client.openStream(), two = client.openStream();
            await one.sequence(`DROP TABLE IF EXISTS ${fresh}w; CREATE TABLE ${fresh}w(a INTEGER PRIMARY KEY, v); INSERT INTO ${fresh}w VALUES(1, 0)`);
            await one.run("BEGIN IMMEDIATE");
            await one.run(`UPDATE ${fresh}w SET v = 1`);
            const waiting = two.run(`UPDATE ${fresh}w SET v = v + 10`);   // Waits for the row.
            await one.run("COMMIT");
            await waiting;
            assert.equal((await one.queryValue(`SELECT v FROM ${fresh}w`)).value, 11);
            one.close();
            two.close();
            client.close();
        });

        test(`${name}a lost socket rolls back`, async () => {
            const client = await open(), stream = client.openStream();
            const other = await open(), watch = other.openStream();
            await stream.sequence(`DROP TABLE IF EXISTS ${fresh}l; CREATE TABLE ${fresh}l(a INTEGER PRIMARY KEY)`);
            await stream.run("BEGIN IMMEDIATE");
            await stream.run(`INSERT INTO ${fresh}l VALUES(1)`);
            client.close();
            await watch.run(`INSERT INTO ${fresh}l VALUES(1)`);           // Waits for the roll back.
            assert.equal((await watch.queryValue(`SELECT count(*) FROM ${fresh}l`)).value, 1);
            other.close();
        });
    }
}

if (isHttp) {
    const open = () => connect({ url, authToken: jwt ?? "none" });

    test("serverless: prepare, get, all, iterate", async () => {
        const conn = open();
        await conn.exec("DROP TABLE IF EXISTS sl; CREATE TABLE sl(id INTEGER PRIMARY KEY, v TEXT, b BLOB)");
        const insert = await conn.prepare("INSERT INTO sl(v, b) VALUES(?, ?)");
        const info = await insert.run(["one", Buffer.from([1, 2])]);
        assert.equal(info.changes, 1);
        assert.equal(Number(info.lastInsertRowid), 1);
        await insert.run(["two", null]);
        const select = await conn.prepare("SELECT id, v FROM sl ORDER BY id");
        assert.deepEqual((await select.all()).map((r) => r.v), ["one", "two"]);
        assert.equal((await (await conn.prepare("SELECT v FROM sl WHERE id = ?")).get([2])).v, "two");
        let count = 0;
        for await (const row of select.iterate()) count += row.id;
        assert.equal(count, 3);
        await conn.close();
    });

    test("serverless: named arguments", async () => {
        const conn = open();
        const row = await (await conn.prepare("SELECT :a AS a, $b AS b")).get({ a: 1, b: "x" });
        assert.deepEqual([row.a, row.b], [1, "x"]);
        await conn.close();
    });

    test("serverless: batch is atomic", async () => {
        const conn = open();
        await conn.exec("DROP TABLE IF EXISTS sb; CREATE TABLE sb(a INTEGER PRIMARY KEY)");
        await conn.batch(["INSERT INTO sb VALUES(1)", "INSERT INTO sb VALUES(2)"], "immediate");
        await assert.rejects(conn.batch(["INSERT INTO sb VALUES(3)", "INSERT INTO sb VALUES(1)"], "immediate"));
        assert.equal((await (await conn.prepare("SELECT count(*) AS n FROM sb")).get()).n, 2);
        await conn.close();
    });

    test("serverless: transactions", async () => {
        const conn = open();
        await conn.exec("DROP TABLE IF EXISTS st; CREATE TABLE st(a INTEGER PRIMARY KEY)");
        const insert = await conn.prepare("INSERT INTO st VALUES(?)");
        const many = conn.transaction(async (values) => {
            for (const value of values) await insert.run([value]);
        });
        await many([1, 2, 3]);
        await assert.rejects(many([4, 1]));
        assert.equal((await (await conn.prepare("SELECT count(*) AS n FROM st")).get()).n, 3);
        assert.equal(conn.inTransaction, false);
        await conn.close();
    });

    test("serverless: errors", async () => {
        const conn = open();
        await assert.rejects(async () => (await conn.prepare("SELECT * FROM nowhere")).all(), /no such table/);
        await assert.rejects(async () => (await conn.prepare("SELEC 1")).all());
        assert.equal((await (await conn.prepare("SELECT 1 AS a")).get()).a, 1);
        await conn.close();
    });
}

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
console.log(`1..${number}`);
process.exit(failed > 0 ? 1 : 0);
