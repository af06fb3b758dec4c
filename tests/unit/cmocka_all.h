/*
 * cmocka_all.h -- cmocka and the four headers that it wants first.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
