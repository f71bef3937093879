# Turns SQL files into C: cmake -DOUT=file.c -DDIR=folder -DKIND=migrations|
# statements -P embed.cmake. Run at build time, so that the digest of a
# migration is always that of the bytes compiled in.
#
# migrations: the table pn_migrations[] of NNNN_name.sql, in order.
# statements: one `const char pn_sql_<name>[]` a file.

# What a statement that is sent again has besides. It writes no second receipt
# (the times keep PostgreSQL to one partition or two). LIMIT keeps it a look-up
# by id in the index: NOT EXISTS would become an anti join, and without nested
# loops that reads every receipt of the month. But a transaction that
# writes nothing does not wait for the synchronous standby at its commit, and
# would acknowledge what the standby may not have. So it writes a message into
# the WAL, which nobody reads.
string(CONCAT unless_received "AND (SELECT true FROM paynotify.receipts p"
    " WHERE p.id = r.id AND p.received_at > now() - interval '1 day'"
    " AND p.received_at < now() + interval '1 day' LIMIT 1) IS NULL")
string(CONCAT after_waiting "WHERE (SELECT pg_logical_emit_message(true,"
    " 'paynotify', '')) IS NOT NULL")

# A C string literal a line; the compiler joins them.
function(to_literal file ret)
    file(READ "${file}" text)
    string(REPLACE "\\" "\\\\" text "${text}")
    string(REPLACE "\"" "\\\"" text "${text}")
    string(REPLACE "\n" "\\n\"\n\t\"" text "${text}")
    set(${ret} "\"${text}\"" PARENT_SCOPE)
endfunction()

file(GLOB files "${DIR}/*.sql")
list(SORT files)
set(c "/* Made from ${KIND} by embed.cmake. */\n")
if(KIND STREQUAL "migrations")
    string(APPEND c "#include \"migrate_internal.h\"\n\n"
        "const struct pn_migration pn_migrations[] = {\n")
    set(count 0)
    foreach(file IN LISTS files)
        get_filename_component(name "${file}" NAME_WE)
        if(NOT name MATCHES "^([0-9][0-9][0-9][0-9])_([a-z0-9_]+)$")
            message(FATAL_ERROR "${file} is not named NNNN_name.sql")
        endif()
        math(EXPR count "${count} + 1")
        string(REGEX REPLACE "^0+" "" number "${CMAKE_MATCH_1}")
        if(NOT number EQUAL count)
            message(FATAL_ERROR "${file}: number ${count} is missing")
        endif()
        file(SHA256 "${file}" digest)
        to_literal("${file}" literal)
        string(APPEND c "{ ${number}, \"${name}\",\n\t${literal},\n"
            "\t\"${digest}\" },\n")
    endforeach()
    string(APPEND c "};\nconst unsigned pn_migrations_count = ${count};\n")
else()
    string(APPEND c "#include \"statements.h\"\n\n")
    foreach(file IN LISTS files)
        get_filename_component(name "${file}" NAME_WE)
        to_literal("${file}" literal)
        string(APPEND c "const char pn_sql_${name}[] =\n\t${literal};\n")
        # The same, for a request that may be stored already.
        if(literal MATCHES "--RESUBMITTED--")
            string(REPLACE "--RESUBMITTED--" "${unless_received}" literal
                "${literal}")
            string(REPLACE "--WAITED--" "${after_waiting}" literal "${literal}")
            string(APPEND c "const char pn_sql_${name}_resubmitted[] =\n"
                "\t${literal};\n")
        endif()
    endforeach()
endif()
file(WRITE "${OUT}" "${c}")
