<?php
// A session through PHP's SQLite3 class and PDO.
$db = new SQLite3($argv[1]);
$db->enableExceptions(false);
$db->exec("CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT UNIQUE, price REAL, data BLOB)");
$insert = $db->prepare("INSERT INTO t(name, price, data) VALUES(:name, :price, :data)");
foreach ([["one", 1.5, "\x00\x01"], ["two", null, null], ["three", 3, "z"]] as $row) {
    $insert->bindValue(":name", $row[0], SQLITE3_TEXT);
    $insert->bindValue(":price", $row[1]);
    $insert->bindValue(":data", $row[2], SQLITE3_BLOB);
    $insert->execute();
    $insert->reset();
}
echo "last ", $db->lastInsertRowID(), " changes ", $db->changes(), "\n";
$result = $db->query("SELECT id, name, price, length(data) AS bytes FROM t ORDER BY id");
while ($row = $result->fetchArray(SQLITE3_ASSOC)) echo json_encode($row), "\n";
for ($i = 0; $i < $result->numColumns(); $i++) echo $result->columnName($i), " ";
echo "\n";
echo @$db->exec("INSERT INTO t(name) VALUES('one')") ? "stored" : "refused", " ",
    $db->lastErrorCode(), " ", $db->lastErrorMsg(), "\n";
$db->createFunction("twice", fn($x) => 2 * $x, 1);
$db->createAggregate("total_length", function ($context, $row, $s) { return $context + strlen($s); },
    fn($context) => $context, 1);
$db->createCollation("backwards", fn($a, $b) => strcmp($b, $a));
echo $db->querySingle("SELECT sum(twice(id)) FROM t"), " ",
    $db->querySingle("SELECT total_length(name) FROM t"), " ",
    $db->querySingle("SELECT group_concat(name) FROM (SELECT name FROM t ORDER BY name COLLATE backwards)"), "\n";
echo json_encode($db->querySingle("SELECT * FROM t WHERE id = 2", true)), "\n";
$blob = $db->openBlob("t", "data", 1);
echo bin2hex(stream_get_contents($blob)), "\n";
fclose($blob);
$copy = new SQLite3(":memory:");
echo $db->backup($copy) ? "copied " : "not copied ", $copy->querySingle("SELECT count(*) FROM t"), "\n";
echo SQLite3::escapeString("it's"), "\n";
$db->close();

$pdo = new PDO("sqlite:" . $argv[1]);
$pdo->setAttribute(PDO::ATTR_ERRMODE, PDO::ERRMODE_EXCEPTION);
$pdo->beginTransaction();
$pdo->exec("UPDATE t SET price = 9 WHERE id = 1");
$pdo->rollBack();
foreach ($pdo->query("SELECT name, price FROM t ORDER BY id", PDO::FETCH_NUM) as $row) echo json_encode($row), "\n";
try {
    $pdo->exec("INSERT INTO t(name) VALUES('two')");
} catch (PDOException $error) {
    echo $error->getMessage(), "\n";
}
$pdo->sqliteCreateFunction("thrice", fn($x) => 3 * $x, 1);
echo $pdo->query("SELECT thrice(14)")->fetchColumn(), "\n";
$statement = $pdo->prepare("SELECT id, name FROM t WHERE name LIKE ?");
$statement->execute(["t%"]);
echo json_encode($statement->fetchAll(PDO::FETCH_KEY_PAIR)), "\n";
echo json_encode($pdo->query("SELECT price FROM t")->getColumnMeta(0)), "\n";
