# bash completion for paynotifyctl(1)                        -*- shell-script -*-
#
# Commands and options are asked of the program itself (--help), which prints its
# tables: what it does not have is not offered, and nothing here grows old.

# "config check", "trigger", ...: one a line.
_paynotifyctl_commands() {
    "$1" --help 2>/dev/null | sed -n 's/^  \([a-z-]\+\( [a-z]\+\)\{0,1\}\)  .*/\1/p'
}

# The accounts of the configuration: "[alipay shop1]" is alipay/shop1.
_paynotifyctl_accounts() {
    local i conf=/etc/paynotifyd/paynotifyd.conf
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        -c | --config) conf=${COMP_WORDS[i + 1]} ;;
        esac
    done
    sed -n 's/^\[\(alipay\|wechat\) \([a-z0-9_-]\+\)\].*/\1\/\2/p' "$conf" 2>/dev/null
}

_paynotifyctl() {
    local program=$1 word=$2 before=$3 commands words command=()
    COMPREPLY=()
    case $before in
    --account)
        mapfile -t COMPREPLY < <(compgen -W "$(_paynotifyctl_accounts)" -- "$word")
        return
        ;;
    -c | --config | --sign-key | --out | --output)
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    esac
    commands=$(_paynotifyctl_commands "$program")
    if ((COMP_CWORD == 1)); then
        words="$(cut -d' ' -f1 <<<"$commands") --help --version"
    elif ((COMP_CWORD == 2)) && words=$(sed -n "s/^${COMP_WORDS[1]} //p" <<<"$commands") &&
        [ -n "$words" ]; then
        :
    elif [[ $word == -* ]]; then
        command=("${COMP_WORDS[1]}")
        grep -qxF -- "${COMP_WORDS[1]} ${COMP_WORDS[2]}" <<<"$commands" &&
            command+=("${COMP_WORDS[2]}")
        words=$("$program" "${command[@]}" --help 2>/dev/null |
            sed -n 's/^  \(-[a-z], \|    \)\(--[a-z-]\+\).*/\2/p')
    else # an operand: a capture, maybe
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word" | sort -u)
}

complete -F _paynotifyctl paynotifyctl
