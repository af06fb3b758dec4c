.parameter init
.parameter list
.param set :n 41
.param set @t 'text'
.param set $b "X'4142'"
.param set ?1 7
.param set :x "1 + 2"
.param set :bare word
.param list
SELECT :n + 1, @t, quote($b), ?1, :x, :bare, typeof(:n);
.param unset :n
SELECT :n IS NULL;
.param clear
SELECT @t IS NULL;
.param list
