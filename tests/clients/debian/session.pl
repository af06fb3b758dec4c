# A session through DBD::SQLite: types, errors, transactions, functions, metadata.
use strict;
use warnings;
use DBI;

my $db = DBI->connect("dbi:SQLite:dbname=$ARGV[0]", "", "", {RaiseError => 0, PrintError => 0, AutoCommit => 1});
$db->do("CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT NOT NULL, price REAL, data BLOB)");
my $insert = $db->prepare("INSERT INTO t(name, price, data) VALUES(?,?,?)");
$insert->execute("one", 1.5, "\x00\x01\x02");
$insert->execute("two", undef, undef);
print "last ", $db->last_insert_id("", "", "t", ""), "\n";
$db->begin_work;
$insert->execute("three", 3, "x");
$db->rollback;
$db->begin_work;
$insert->execute("four", 4.25, "y");
$db->commit;
for my $row (@{$db->selectall_arrayref("SELECT id, name, price, length(data) FROM t ORDER BY id")}) {
    print join("|", map { defined $_ ? $_ : "NULL" } @$row), "\n";
}
my $bad = $db->do("INSERT INTO t(name) VALUES(NULL)");
print "error ", $db->err, " ", $db->errstr, "\n";
$db->do("SELEC 1");
print "error ", $db->err, " ", $db->errstr, "\n";
$db->sqlite_create_function("twice", 1, sub { return 2 * $_[0] });
$db->sqlite_create_aggregate("joined", 1, "Joined");
$db->sqlite_create_collation("backwards", sub { $_[1] cmp $_[0] });
print join(",", @{$db->selectcol_arrayref("SELECT twice(id) FROM t")}), "\n";
print $db->selectrow_array("SELECT joined(name) FROM t"), "\n";
print join(",", @{$db->selectcol_arrayref("SELECT name FROM t ORDER BY name COLLATE backwards")}), "\n";
my $columns = $db->column_info(undef, undef, "t", "%")->fetchall_arrayref({});
print join(",", map { $_->{COLUMN_NAME} . ":" . $_->{TYPE_NAME} } @$columns), "\n";
my $statement = $db->prepare("SELECT * FROM t WHERE id = :id");
$statement->bind_param(":id", 2);
$statement->execute;
print join(",", @{$statement->{NAME}}), " ", join(",", @{$statement->{TYPE}}), "\n";
print $statement->fetchrow_hashref->{name}, "\n";
$statement->finish;
print "tables ", join(",", sort grep { !/sqlite_/ } $db->tables), "\n";
$db->sqlite_backup_to_file("$ARGV[0].copy");
my $copy = DBI->connect("dbi:SQLite:dbname=$ARGV[0].copy", "", "");
print "copy ", $copy->selectrow_array("SELECT count(*) FROM t"), "\n";
$copy->disconnect;
$db->disconnect;
print "done\n";

package Joined;
sub new { return bless [], shift }
sub step { my ($self, $value) = @_; push @$self, $value }
sub finalize { my ($self) = @_; return join("+", @$self) }
