# shellcheck shell=bash disable=SC2034,SC2154 # shared with scripts/services
# MySQL itself, only where someone says where it is: Debian has no package of it.
mysql_optional=yes
mysql_hint='Start a MySQL 8.0 or newer, for example in a container.'

mysql_find() { reason='no package has it'; return 1; }
mysql_install() { return 1; }
mysql_start() { return 1; }
mysql_stop() { :; }
