# shellcheck shell=bash disable=SC2034,SC2154 # shared with scripts/services
# PgBouncer in transaction mode, in front of the postgres service.
pgbouncer_needs=postgres
pgbouncer_hint='Install PgBouncer (Debian: apt-get install pgbouncer).'

pgbouncer_find() { pgbouncer_server=$(PATH=$PATH:/usr/sbin command -v pgbouncer); }

pgbouncer_install() { apt_install pgbouncer; }

# Connections go from client to client in turn, and idle ones go soon: whoever
# leaves something behind on one, or expects to meet it again, finds out. It
# takes no statements that were prepared under a name, as all versions before
# 1.21 and many that are set up so.
pgbouncer_start() {
	local data=$dir/pgbouncer url=$POSTROOM_TEST_POSTGRES_DSN port try more=
	if ! [[ $url =~ ^postgres(ql)?://([^:@/]+)(:([^@/]*))?@([^:/]+):([0-9]+)/ ]]; then
		say "pgbouncer: POSTROOM_TEST_POSTGRES_DSN is not postgres://user:password@host:port/…" 2>>"$dir/pgbouncer.log"
		return 1
	fi
	if [[ -n ${BASH_REMATCH[4]} ]]; then more="password=${BASH_REMATCH[4]}"; fi
	mkdir -m 700 "$data"
	give nobody "$data"
	for try in 1 2 3; do
		port=$(free_port)
		cat >"$data/pgbouncer.ini" <<-INI
			[databases]
			* = host=${BASH_REMATCH[5]} port=${BASH_REMATCH[6]} user=${BASH_REMATCH[2]} $more
			[pgbouncer]
			listen_addr = 127.0.0.1
			listen_port = $port
			unix_socket_dir =
			auth_type = any
			pool_mode = transaction
			default_pool_size = 10
			server_round_robin = 1
			server_idle_timeout = 10
			max_client_conn = 1000
			ignore_startup_parameters = extra_float_digits
		INI
		if "$pgbouncer_server" --version | grep -Eq ' 1\.(2[1-9]|[3-9][0-9])'; then
			echo 'max_prepared_statements = 0' >>"$data/pgbouncer.ini"
		fi
		give nobody "$data/pgbouncer.ini"
		launch pgbouncer nobody "$pgbouncer_server" "$data/pgbouncer.ini"
		if await pgbouncer listening "$port"; then
			export POSTROOM_TEST_PGBOUNCER_DSN="postgres://${BASH_REMATCH[2]}@127.0.0.1:$port/postgres?sslmode=disable"
			return
		fi
		halt pgbouncer KILL
		say "pgbouncer: attempt $try, on port $port, failed"
	done
	return 1
}

pgbouncer_stop() { halt pgbouncer TERM; }
