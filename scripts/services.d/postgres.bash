# shellcheck shell=bash disable=SC2034,SC2154 # shared with scripts/services
# PostgreSQL, the oldest one found: new servers are the business of postgres18.
postgres_hint='Install PostgreSQL 15 or newer (Debian: apt-get install postgresql openssl).'
export POSTROOM_TEST_POSTGRES_TLS_ABSENT='only a server that scripts/services started has the role for it'

postgres_find() {
	local bin
	for bin in $(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V) "$(dirname "$(command -v pg_ctl)")"; do
		if [[ -x $bin/initdb && $(pg_major "$bin") -ge 15 ]]; then
			postgres_bin=$bin
			command -v openssl >/dev/null
			return
		fi
	done
	return 1
}

postgres_install() { apt_install postgresql openssl; }

postgres_start() {
	pg_start postgres "$postgres_bin" || return
	export POSTROOM_TEST_POSTGRES_DSN="postgres://postgres@127.0.0.1:$pg_port/postgres?sslmode=disable"
	# This role is refused without TLS, so it proves that TLS was used.
	export POSTROOM_TEST_POSTGRES_TLS_DSN="postgres://postroom_tls@127.0.0.1:$pg_port/postgres?sslmode=verify-full&sslrootcert=$dir/postgres.crt"
}

# An immediate shutdown: the data is thrown away.
postgres_stop() { halt postgres QUIT; }

pg_major() { "$1/postgres" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/'; }

# pg_start NAME BIN starts a server on fresh data and sets pg_port. Text sorts
# by the rules of a language there, not by bytes, so that a statement which
# relies on the order of bytes without saying so is found out.
pg_start() {
	local name=$1 bin=$2 data=$dir/$1 try more args=POSTROOM_${1^^}_ARGS
	read -ra more <<<"${!args-}"
	mkdir -m 700 "$data"
	give postgres "$data"
	as postgres "$bin/initdb" -D "$data" -U postgres -A trust -E UTF8 --no-instructions \
		--locale=C.UTF-8 --locale-provider=icu --icu-locale=en-US >>"$dir/$name.log" 2>&1 || return
	pg_tls "$name" "$bin" >>"$dir/$name.log" 2>&1 || return
	for try in 1 2 3; do
		pg_port=$(free_port)
		launch "$name" postgres "$bin/postgres" -D "$data" -p "$pg_port" -c listen_addresses=127.0.0.1 \
			-c unix_socket_directories= -c max_connections=200 -c ssl=on "${more[@]}"
		if await "$name" grep -q ready "$data/postmaster.pid"; then return; fi
		halt "$name" QUIT
		say "$name: attempt $try, on port $pg_port, failed"
	done
	return 1
}

# pg_tls NAME BIN gives the server a certificate, and a role that must use it.
pg_tls() {
	local name=$1 data=$dir/$1
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
		-subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 \
		-keyout "$data/server.key" -out "$dir/$name.crt" &&
		chmod 600 "$data/server.key" &&
		cp "$dir/$name.crt" "$data/server.crt" &&
		give postgres "$data/server.key" "$data/server.crt" &&
		sed -i '1i hostnossl all postroom_tls all reject' "$data/pg_hba.conf" &&
		as postgres "$2/postgres" --single -D "$data" postgres <<<'CREATE ROLE postroom_tls LOGIN CREATEDB'
}
