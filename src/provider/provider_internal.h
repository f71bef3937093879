/*
 * What the files of src/provider share among themselves: the rows of the
 * registry. Not a contract; no other folder includes it.
 */
#ifndef PN_PROVIDER_INTERNAL_H
#define PN_PROVIDER_INTERNAL_H

#include "paynotify/provider.h"

extern const struct pn_provider pn_provider_alipay;
extern const struct pn_provider pn_provider_template;
extern const struct pn_provider pn_provider_wechat;

#endif
