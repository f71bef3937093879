/*
 * Compiler attributes that the contracts use. Any file may include this.
 */
#ifndef PN_COMPILER_H
#define PN_COMPILER_H

/* The result says whether it worked: dropping it is spelled (void). */
#define PN_MUSTCHECK       __attribute__((warn_unused_result))
#define PN_PRINTF(fmt, at) __attribute__((format(printf, fmt, at)))
/* Scope cleanup: PN_CLEANUP(pn_buf_done) struct pn_buf b = ...; */
#define PN_CLEANUP(fn) __attribute__((cleanup(fn)))
#define PN_NORETURN    __attribute__((noreturn))

#define PN_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
