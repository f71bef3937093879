/*
 * What a fuzz target defines: one run over one input. It returns 0, and aborts
 * by an assert when a promise of the code under test does not hold. Its result
 * must depend on the input only.
 */
#ifndef PN_TESTS_FUZZ_H
#define PN_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
