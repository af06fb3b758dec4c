/*
 * collate.h -- the three built-in collations.  A host collation is asked through its function.
 */
#pragma once

#include "value/value.h"

/* BINARY, NOCASE or RTRIM by name, in any case; NULL if it is none of them. */
const Collation *collation_find_builtin(Slice name);

/*
 * -1, 0 or 1.  NOCASE folds A-Z, stops at the first NUL that both have, then compares lengths.
 * RTRIM ignores spaces at the end.  `collation` NULL means BINARY.
 */
int collation_compare(const Collation *collation, Slice a, Slice b);

/* True if equal texts under it may differ in bytes. */
static inline bool
collation_hides_text(const Collation *collation)
{
    return collation != NULL && collation->kind != COLLATION_BINARY;
}
