# shellcheck shell=bash disable=SC2034,SC2154 # shared with scripts/services
# SQL Server, only where someone says where it is: it has no free package.
sqlserver_optional=yes
sqlserver_hint='Start a SQL Server 2019 or newer, for example in a container.'

sqlserver_find() { reason='no package has it'; return 1; }
sqlserver_install() { return 1; }
sqlserver_start() { return 1; }
sqlserver_stop() { :; }
