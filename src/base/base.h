/*
 * base.h -- the face of base/: everything above includes this one.
 */
#pragma once

#include "base/asserts.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sort.h"
#include "base/types.h"
