//! Conversion of tokens to steps in postfix order by precedence (Pratt's method).

use crate::error::{FormulaError, FormulaProblem, nearest};
use crate::formula::Formula;
use crate::lexer::{Token, TokenKind, tokens};
use crate::op::{Binary, FUNCTIONS, Level, Op, Unary};

/// Returns the steps of a text, in which every name is an index into `names`.
pub(crate) fn parse(text: &str, names: &[&str]) -> Result<Vec<Op>, FormulaError> {
    let mut parser =
        Parser { text, names, tokens: tokens(text)?, next: 0, steps: Vec::new(), waiting: 0, nested: 0 };
    parser.expression(Level::Or)?;
    match parser.peek().kind {
        TokenKind::End => Ok(parser.steps),
        _ => Err(parser.error_here(FormulaProblem::Expected("an operation or the end"))),
    }
}

struct Parser<'a> {
    text: &'a str,
    names: &'a [&'a str],
    tokens: Vec<Token<'a>>,
    next: usize,
    steps: Vec<Op>,
    /// Number of values on the stack after the steps.
    waiting: usize,
    nested: usize,
}

impl<'a> Parser<'a> {
    /// Parses a value and all following operations with a precedence of at least `least`.
    fn expression(&mut self, least: Level) -> Result<(), FormulaError> {
        if self.nested == Formula::MAX_NESTING {
            return Err(self.error_here(FormulaProblem::TooDeep));
        }
        self.nested += 1;
        self.operand(least)?;
        while let TokenKind::Infix(binary) = self.peek().kind
            && let Some(infix) = binary.infix()
            && infix.level >= least
        {
            let sign = self.take();
            self.expression(infix.right)?;
            self.emit(Op::Binary(binary), sign)?;
            self.reject_chain(infix.level)?;
        }
        self.nested -= 1;
        Ok(())
    }

    /// Parses a single value.
    fn operand(&mut self, least: Level) -> Result<(), FormulaError> {
        let token = self.peek();
        match token.kind {
            TokenKind::Number(value) => self.leaf(Op::Number(value)),
            TokenKind::Word(word) => self.word(word),
            TokenKind::Infix(Binary::Subtract) => self.prefix(Unary::Negate, Level::Negate),
            TokenKind::Not if least > Level::Not => Err(self.error_here(FormulaProblem::NotInside)),
            TokenKind::Not => self.prefix(Unary::Not, Level::Not),
            TokenKind::Open => {
                self.take();
                self.expression(Level::Or)?;
                self.expect(TokenKind::Close, "an operation or `)`")
            }
            TokenKind::Infix(_) | TokenKind::Close | TokenKind::Comma | TokenKind::End => {
                Err(self.error_here(FormulaProblem::NoValue))
            }
        }
    }

    fn leaf(&mut self, op: Op) -> Result<(), FormulaError> {
        let token = self.take();
        self.emit(op, token)
    }

    fn prefix(&mut self, unary: Unary, level: Level) -> Result<(), FormulaError> {
        let sign = self.take();
        self.expression(level)?;
        self.emit(Op::Unary(unary), sign)
    }

    /// Parses a function if a parenthesis follows, else a name.
    fn word(&mut self, word: &'a str) -> Result<(), FormulaError> {
        let function = FUNCTIONS.iter().find(|(name, _)| *name == word);
        if self.tokens[self.next + 1].kind == TokenKind::Open {
            let (name, op) = *function.ok_or_else(|| self.error_here(unknown_function(word)))?;
            return self.call(name, op);
        }
        match (self.names.iter().position(|name| *name == word), function) {
            (Some(index), _) => self.leaf(Op::Name(index)),
            (None, Some((function, _))) => Err(self.error_here(FormulaProblem::NoArguments(function))),
            (None, None) => Err(self.error_here(unknown_name(word, self.names))),
        }
    }

    fn call(&mut self, function: &'static str, op: Op) -> Result<(), FormulaError> {
        let name = self.take();
        self.take();
        let mut has = 0;
        // A parenthesis may close at once, but not after a comma.
        while self.peek().kind != TokenKind::Close || has > 0 {
            self.expression(Level::Or)?;
            has += 1;
            if self.peek().kind != TokenKind::Comma {
                break;
            }
            self.take();
        }
        self.expect(TokenKind::Close, "an operation, `,` or `)`")?;
        if has != op.arity() {
            let problem = FormulaProblem::Arguments { function, takes: op.arity(), has };
            return Err(FormulaError::new(self.text, name.at, problem));
        }
        self.emit(op, name)
    }

    /// Appends the next step, which is located at this token.
    fn emit(&mut self, op: Op, token: Token<'a>) -> Result<(), FormulaError> {
        // Calls with the wrong number of arguments are rejected before, so the operands exist.
        self.waiting = self.waiting + 1 - op.arity();
        self.steps.push(op);
        let problem = if self.waiting > Formula::MAX_WAITING {
            FormulaProblem::TooDeep
        } else if self.steps.len() > Formula::MAX_STEPS {
            FormulaProblem::TooLong
        } else {
            return Ok(());
        };
        Err(FormulaError::new(self.text, token.at, problem))
    }

    fn reject_chain(&self, level: Level) -> Result<(), FormulaError> {
        match self.peek().kind {
            TokenKind::Infix(next)
                if level == Level::Compare && next.infix().is_some_and(|next| next.level == level) =>
            {
                Err(self.error_here(FormulaProblem::ChainedComparison))
            }
            _ => Ok(()),
        }
    }

    fn expect(&mut self, kind: TokenKind<'_>, what: &'static str) -> Result<(), FormulaError> {
        if self.peek().kind != kind {
            return Err(self.error_here(FormulaProblem::Expected(what)));
        }
        self.take();
        Ok(())
    }

    /// Returns the next token. The last one is `End` and is never consumed.
    fn peek(&self) -> Token<'a> {
        self.tokens[self.next]
    }

    fn take(&mut self) -> Token<'a> {
        self.next += 1;
        self.tokens[self.next - 1]
    }

    /// Returns an error at the next token.
    fn error_here(&self, problem: FormulaProblem) -> FormulaError {
        FormulaError::new(self.text, self.peek().at, problem)
    }
}

fn unknown_name(word: &str, names: &[&str]) -> FormulaProblem {
    FormulaProblem::UnknownName {
        name: word.to_owned(),
        nearest: nearest(word, names.iter().copied()),
        known: if names.is_empty() { "none".to_owned() } else { names.join(", ") },
    }
}

fn unknown_function(word: &str) -> FormulaProblem {
    FormulaProblem::UnknownFunction {
        name: word.to_owned(),
        nearest: nearest(word, FUNCTIONS.iter().map(|(name, _)| *name)),
        known: FUNCTIONS.map(|(name, _)| name).join(", "),
    }
}
