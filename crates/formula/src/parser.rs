//! Tokens into steps in postfix order, by the levels of the operations (Pratt's method).

use crate::error::{FormulaError, Problem, nearest};
use crate::formula::Formula;
use crate::lexer::{Kind, Token, tokens};
use crate::op::{Binary, FUNCTIONS, Level, Op, Unary};

/// The steps of a text, every name in it being an index into `names`.
pub(crate) fn parse(text: &str, names: &[&str]) -> Result<Vec<Op>, FormulaError> {
    let mut parser =
        Parser { text, names, tokens: tokens(text)?, next: 0, steps: Vec::new(), waiting: 0, nested: 0 };
    parser.expression(Level::Or)?;
    match parser.peek().kind {
        Kind::End => Ok(parser.steps),
        _ => Err(parser.wrong(Problem::Expected("an operation or the end"))),
    }
}

struct Parser<'a> {
    text: &'a str,
    names: &'a [&'a str],
    tokens: Vec<Token<'a>>,
    next: usize,
    steps: Vec<Op>,
    /// How many values would be on the stack after the steps.
    waiting: usize,
    nested: usize,
}

impl<'a> Parser<'a> {
    /// A value and what follows it, as long as that binds at least as tightly as `least`.
    fn expression(&mut self, least: Level) -> Result<(), FormulaError> {
        if self.nested == Formula::MOST_NESTED {
            return Err(self.wrong(Problem::TooDeep));
        }
        self.nested += 1;
        self.operand(least)?;
        while let Kind::Infix(binary) = self.peek().kind
            && let Some(infix) = binary.infix()
            && infix.level >= least
        {
            let sign = self.take();
            self.expression(infix.right)?;
            self.emit(Op::Binary(binary), sign)?;
            self.refuse_a_chain(infix.level)?;
        }
        self.nested -= 1;
        Ok(())
    }

    /// A value with nothing after it.
    fn operand(&mut self, least: Level) -> Result<(), FormulaError> {
        let token = self.peek();
        match token.kind {
            Kind::Number(value) => self.leaf(Op::Number(value)),
            Kind::Word(word) => self.word(word),
            Kind::Infix(Binary::Subtract) => self.prefix(Unary::Negate, Level::Negate),
            Kind::Not if least > Level::Not => Err(self.wrong(Problem::NotInside)),
            Kind::Not => self.prefix(Unary::Not, Level::Not),
            Kind::Open => {
                self.take();
                self.expression(Level::Or)?;
                self.expect(Kind::Close, "an operation or `)`")
            }
            Kind::Infix(_) | Kind::Close | Kind::Comma | Kind::End => Err(self.wrong(Problem::NoValue)),
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

    /// A function, if a parenthesis follows, and else a name.
    fn word(&mut self, word: &'a str) -> Result<(), FormulaError> {
        let function = FUNCTIONS.iter().find(|(name, _)| *name == word);
        if self.tokens[self.next + 1].kind == Kind::Open {
            let (name, op) = *function.ok_or_else(|| self.wrong(unknown_function(word)))?;
            return self.call(name, op);
        }
        match (self.names.iter().position(|name| *name == word), function) {
            (Some(index), _) => self.leaf(Op::Name(index)),
            (None, Some((function, _))) => Err(self.wrong(Problem::NoArguments(function))),
            (None, None) => Err(self.wrong(unknown_name(word, self.names))),
        }
    }

    fn call(&mut self, function: &'static str, op: Op) -> Result<(), FormulaError> {
        let name = self.take();
        self.take();
        let mut has = 0;
        // A parenthesis may close at once, but not after a comma.
        while self.peek().kind != Kind::Close || has > 0 {
            self.expression(Level::Or)?;
            has += 1;
            if self.peek().kind != Kind::Comma {
                break;
            }
            self.take();
        }
        self.expect(Kind::Close, "an operation, `,` or `)`")?;
        if has != op.takes() {
            let problem = Problem::Arguments { function, takes: op.takes(), has };
            return Err(FormulaError::new(self.text, name.at, problem));
        }
        self.emit(op, name)
    }

    /// The next step of the formula, which stands at this token.
    fn emit(&mut self, op: Op, token: Token<'a>) -> Result<(), FormulaError> {
        // A call with the wrong number of values is refused before this, so what is taken is there.
        self.waiting = self.waiting + 1 - op.takes();
        self.steps.push(op);
        let problem = if self.waiting > Formula::MOST_WAITING {
            Problem::TooDeep
        } else if self.steps.len() > Formula::MOST_STEPS {
            Problem::TooLong
        } else {
            return Ok(());
        };
        Err(FormulaError::new(self.text, token.at, problem))
    }

    fn refuse_a_chain(&self, level: Level) -> Result<(), FormulaError> {
        match self.peek().kind {
            Kind::Infix(next)
                if level == Level::Compare && next.infix().is_some_and(|next| next.level == level) =>
            {
                Err(self.wrong(Problem::ChainedComparison))
            }
            _ => Ok(()),
        }
    }

    fn expect(&mut self, kind: Kind<'_>, what: &'static str) -> Result<(), FormulaError> {
        if self.peek().kind != kind {
            return Err(self.wrong(Problem::Expected(what)));
        }
        self.take();
        Ok(())
    }

    /// The next token. The last one is `End`, and nothing takes it.
    fn peek(&self) -> Token<'a> {
        self.tokens[self.next]
    }

    fn take(&mut self) -> Token<'a> {
        self.next += 1;
        self.tokens[self.next - 1]
    }

    /// Something is wrong at the next token.
    fn wrong(&self, problem: Problem) -> FormulaError {
        FormulaError::new(self.text, self.peek().at, problem)
    }
}

fn unknown_name(word: &str, names: &[&str]) -> Problem {
    Problem::UnknownName {
        name: word.to_owned(),
        nearest: nearest(word, names.iter().copied()),
        known: if names.is_empty() { "none".to_owned() } else { names.join(", ") },
    }
}

fn unknown_function(word: &str) -> Problem {
    Problem::UnknownFunction {
        name: word.to_owned(),
        nearest: nearest(word, FUNCTIONS.iter().map(|(name, _)| *name)),
        known: FUNCTIONS.map(|(name, _)| name).join(", "),
    }
}
