# shellcheck shell=bash disable=SC2034,SC2154 # shared with scripts/services
# MariaDB as the system has it.
mariadb_hint='Install MariaDB 10.6 or newer (Debian: apt-get install mariadb-server).'

mariadb_find() {
	mariadb_server=$(PATH=$PATH:/usr/sbin:/usr/libexec command -v mariadbd) &&
		command -v mariadb-install-db >/dev/null
}

mariadb_install() { apt_install mariadb-server; }

# The server's own settings, but for what keeps data over a crash of the machine:
# this data is thrown away.
mariadb_start() {
	local data=$dir/mariadb user=mysql port try more
	read -ra more <<<"${POSTROOM_MARIADB_ARGS-}"
	mkdir -m 700 "$data"
	give "$user" "$data"
	((EUID == 0)) || user=$(id -un)
	as mysql mariadb-install-db --no-defaults --user="$user" --datadir="$data/data" \
		--auth-root-authentication-method=normal --skip-test-db >>"$dir/mariadb.log" 2>&1 || return
	for try in 1 2 3; do
		port=$(free_port)
		launch mariadb mysql "$mariadb_server" --no-defaults --user="$user" --datadir="$data/data" --tmpdir="$data" \
			--port="$port" --bind-address=127.0.0.1 --socket="$data/socket" --pid-file="$data/pid" \
			--max-connections=400 --innodb-flush-log-at-trx-commit=2 --innodb-doublewrite=0 "${more[@]}"
		if await mariadb listening "$port"; then
			export POSTROOM_TEST_MARIADB_DSN="root@tcp(127.0.0.1:$port)/"
			return
		fi
		halt mariadb KILL
		say "mariadb: attempt $try, on port $port, failed"
	done
	return 1
}

# Killed: the data is thrown away.
mariadb_stop() { halt mariadb KILL; }
