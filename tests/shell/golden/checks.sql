create table p(a integer primary key, b unique, c);
create table "ch x"(x references p, y references p(b), z references p(b), "w w" text collate nocase, foreign key(y,z) references p(b,c));
create index cz on "ch x"(z);
create table d(a primary key, b references nosuch(q)) without rowid;
insert into p values(1,'x',2.5),(2,null,x'0102');
.lint fkey-indexes
.lint fkey-indexes -verbose
.lint fkey-indexes -groupbyparent
.lint fkey-indexes -v -g
.lint
.lint fkey -zz
.sha3sum
.sha3sum --schema
.sha3sum --sha3-384 p
.sha3sum a b
create table s(x integer primary key autoincrement, y real);
insert into s(y) values(1.5),(-1e300),(null);
insert into s(y) values('text'),(x'');
analyze;
.sha3sum --sha3-256
.sha3sum --sha3-512 sqlite%
.sha3sum --schema --sha3-512 sqlite%
.sha3sum nosuch
.limit column 5
.limit c
.limit nosuch
.limit sql_length 100 2
.limit col 7
select 1,2,3,4,5,6,7,8;
.log stdout
select * from nosuch;
.log off
select * from nosuch;
.log a b
.connection
.connection 1
.connection
create table z(a);
.tables
.connection 0
.tables
.connection close 0
.connection close 1
.connection
.connection close
.connection 2
.tables
.open other.db
create table o(a);
.connection
.connection 0
.tables
.connection
