# Makes the configuration that the package installs of the sample: whatever needs
# a key, a number or an application of the merchant's is commented out, so that it
# loads as it is. What is left receives nothing, and answers.
/has no use for\.$/a\
; Here they are commented out, and there is no account: fill one in, and take the\
; first `;` from its lines and from that of its name.
/^\[\(alipay\|wechat\) /,$ s/^[^;]/;&/
