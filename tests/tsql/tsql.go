// Package tsql checks statements of SQL Server with a parser, where no server can
// be had.
package tsql

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/sqlc-dev/teesql/parser"
)

// procedures are those that a statement of ours may call.
var procedures = map[string]bool{"sp_getapplock": true}

// words are keywords that the parser's lexer takes for names.
var words = map[string]bool{}

func init() {
	for w := range strings.FieldsSeq(`
		APPLY CACHE CAST CLUSTERED COALESCE CONVERT EXISTS FOR INCREMENT LOCK_ESCALATION LOCK_TIMEOUT
		NEXT NOCOUNT NONCLUSTERED OFF OPENJSON OUTPUT PRIMARY SEQUENCE START UNIQUE VALUE XACT_ABORT
	`) {
		words[w] = true
	}
}

// Check parses a batch of statements in ASCII.
//
// The parser is lenient: it takes a misspelt keyword for the name of a procedure,
// and leaves out what it can't read. So each name, variable and literal must be
// found again in the tree at its place, each procedure must be a known one, and
// each kind of bracket must be closed.
func Check(text string) error {
	script, err := parser.Parse(context.Background(), strings.NewReader(text))
	if err != nil {
		return err
	}
	encoded, err := parser.MarshalScript(script)
	if err != nil {
		return err
	}
	t := tree{found: map[span]bool{}}
	var root any
	if err := json.Unmarshal(encoded, &root); err != nil {
		return err
	}
	t.walk(root)
	return errors.Join(append(t.errs, t.missing(text))...)
}

// A span is a place in the text.
type span struct{ start, length int }

type tree struct {
	found map[span]bool
	errs  []error
}

func (t *tree) walk(node any) {
	switch node := node.(type) {
	case []any:
		for _, n := range node {
			t.walk(n)
		}
	case map[string]any:
		start, _ := node["StartOffset"].(float64)
		length, _ := node["FragmentLength"].(float64)
		t.found[span{int(start), int(length)}] = true
		if name := procedure(node); name != "" && !procedures[name] {
			t.errs = append(t.errs, fmt.Errorf("%q is neither a keyword nor a procedure", name))
		}
		for _, n := range node {
			t.walk(n)
		}
	}
}

// procedure is the name of the procedure that a node calls, if it does.
func procedure(node map[string]any) string {
	if node["$type"] != "ProcedureReference" {
		return ""
	}
	name, _ := node["Name"].(map[string]any)
	base, _ := name["BaseIdentifier"].(map[string]any)
	value, _ := base["Value"].(string)
	return value
}

// missing tells of the first name, variable or literal that the tree lacks.
func (t *tree) missing(text string) error {
	lexer := parser.NewLexer(text)
	open := map[string]int{}
	before := ""
	for {
		token := lexer.NextToken()
		word := strings.ToUpper(token.Literal)
		switch word {
		case "TRY", "CATCH":
			open["END "+word] += map[string]int{"BEGIN": 1, "END": -1}[before]
		case "BEGIN", "CASE":
			open["END"]++
		case "END":
			open["END"]--
		case "(":
			open[")"]++
		case ")":
			open[")"]--
		}
		before = word
		switch token.Type {
		case parser.TokenEOF:
			for what, n := range open {
				if n != 0 {
					return fmt.Errorf("%d of %s are missing", n, what)
				}
			}
			return nil
		case parser.TokenError:
			return fmt.Errorf("can't read %q", token.Literal)
		case parser.TokenIdent, parser.TokenNumber, parser.TokenString, parser.TokenNationalString, parser.TokenBinary:
			if !t.has(token) {
				return fmt.Errorf("can't understand %q at %d", token.Literal, token.Pos)
			}
		}
	}
}

// has reports whether a token is in the tree: as it is, in quotes, or as a keyword.
func (t *tree) has(token parser.Token) bool {
	return words[token.Literal] || t.found[span{token.Pos, len(token.Literal)}] || t.found[span{token.Pos, len(token.Literal) + 2}]
}
