module github.com/postroom/postroom

go 1.25
