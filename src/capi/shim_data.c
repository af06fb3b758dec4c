/*
 * shim_data.c -- the data that libsqlite3.so.0 exports beside its functions.
 */
#include "sqlite3.h"

SQLITE_API const char sqlite3_version[] = SQLITE_VERSION;
SQLITE_API char *sqlite3_temp_directory = 0;
SQLITE_API char *sqlite3_data_directory = 0;
