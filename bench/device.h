/*
 * device.h -- what a sync costs here, now: a probe to print beside durable figures.
 */
#pragma once

#include "harness.h"

/* The median of some syncs after a write of 4 KiB to a file of its own, in microseconds. */
double device_probe_us(const char *directory);

/* Print the probe.  With `fixed` it must be what the shim promises, else the run fails. */
void device_tell(Bench *bench);
