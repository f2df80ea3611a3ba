//! Reads the parameters of a policy: one declaration gives the name, the values, the default, the
//! documentation and the typed value of a parameter.

use std::ops::RangeInclusive;
use std::str::FromStr;

use miserly_core::Span;
use miserly_formula::FormulaError;

use super::domain::{self, Domain, NEVER};
use super::error::nearest;
use super::syntax::{Arg, WrittenValue};
use super::{DefaultValue, Param, Params, PolicyDescriptor, PolicyError, PolicySpec, Registry};
use crate::backfill::policies::Point;
use crate::backfill::{
    BillingWeights, BillingWeightsError, PreemptionRules, PreemptionRulesError, RunningLimits,
    RunningLimitsError,
};
use crate::shared::{Draw, JobFacts, Order, Priority, ShareTree, ShareTreeError, Weight};

/// Declares the parameters of a policy and reads their values.
///
/// Each method declares one parameter and returns its value: the written one, or the default. The
/// declarations are also the documentation of the policy, so their order is that of the document.
///
/// # Errors
/// All methods: if the written value, or the default, is no value of the parameter, or if it is
/// given twice.
///
/// # Example
/// ```
/// use miserly_core::Span;
/// use miserly_policies::{ParamReader, PolicyError};
///
/// struct Rules {
///     quantum: Span,
///     keep_work: bool,
/// }
///
/// fn rules(params: &mut ParamReader<'_>) -> Result<Rules, PolicyError> {
///     Ok(Rules {
///         quantum: params.duration("quantum", 1, "1m", "the length of the quantum")?,
///         keep_work: params.flag("keep_work", false, "the work of a quantum is kept")?,
///     })
/// }
/// ```
#[derive(Debug)]
pub struct ParamReader<'a> {
    policy: &'static PolicyDescriptor,
    registry: &'a Registry,
    written: &'a [Arg],
    seed: u64,
    declared: Vec<Declared>,
    orders: Orders,
    has_own_seed: bool,
    horizon: Option<Span>,
}

/// The needs of the orders that were read.
#[derive(Debug, Default)]
struct Orders {
    /// Whether one is random.
    random: bool,
    /// Whether one uses usage.
    usage: bool,
    /// Whether one uses the tree of shares.
    shares: bool,
    /// The facts of jobs that they use.
    uses: JobFacts,
}

/// A declared parameter, with its value in canonical form if one was written.
#[derive(Debug)]
struct Declared {
    param: Param,
    given: Option<String>,
}

/// The result of a reader: the facts that the written form shows, besides the typed parameters.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Facts {
    /// The parameters that were given, in canonical form and in the order of their declaration.
    pub(super) given: Vec<(&'static str, String)>,
    /// Whether the policy draws at random by the seed of the run.
    pub(super) is_random: bool,
    /// The horizon, if the policy has one.
    pub(super) horizon: Option<Span>,
    /// The facts of jobs that its orders use.
    pub(super) uses: JobFacts,
}

/// The weight, the random draws, the half-life of usage and the tree of shares that hold for every order of a policy.
#[derive(Clone, Debug)]
pub struct OrderSettings {
    weight: Weight,
    draw: Draw,
    seed: u64,
    half_life: Span,
    shares: Option<ShareTree>,
}

impl OrderSettings {
    /// Returns the order with these settings.
    pub fn apply(&self, order: Order) -> Order {
        let order = order.with_weight(self.weight).with_draws(self.draw, self.seed);
        order.with_half_life(self.half_life).with_shares(self.shares.clone())
    }
}

/// A backfill policy that runs within another one.
#[derive(Debug)]
pub struct InnerPolicy {
    /// The parameters of the inner policy.
    pub params: Box<dyn Params>,
    /// Its rules.
    pub point: Point,
}

/// The reason why a text is no value of a parameter.
enum Mistake {
    NoValue,
    Formula(Box<FormulaError>),
    Policy(Box<PolicyError>),
    Shares(ShareTreeError),
    Limits(RunningLimitsError),
    Preemption(PreemptionRulesError),
    Billing(BillingWeightsError),
}

/// A value, with its canonical form where that is not the text as written.
type Parsed<T> = Result<(T, Option<String>), Mistake>;

#[expect(clippy::missing_errors_doc, reason = "the type has those of all methods")]
impl<'a> ParamReader<'a> {
    /// Creates a reader of these written parameters. `seed` is that of the run.
    pub(super) fn new(
        policy: &'static PolicyDescriptor,
        registry: &'a Registry,
        written: &'a [Arg],
        seed: u64,
    ) -> ParamReader<'a> {
        ParamReader {
            policy,
            registry,
            written,
            seed,
            declared: Vec::new(),
            orders: Orders::default(),
            has_own_seed: false,
            horizon: None,
        }
    }

    /// Reads `true` or `false`.
    pub fn flag(
        &mut self,
        name: &'static str,
        default: bool,
        doc: &'static str,
    ) -> Result<bool, PolicyError> {
        let default = if default { "true" } else { "false" };
        self.plain(name, Domain::Flag, default, doc, |text| text.parse().ok())
    }

    /// Reads a whole number of this range.
    pub fn integer(
        &mut self,
        name: &'static str,
        range: RangeInclusive<u64>,
        default: u64,
        doc: &'static str,
    ) -> Result<u64, PolicyError> {
        let domain = Domain::Integer(*range.start(), *range.end());
        self.plain(name, domain, &default.to_string(), doc, |text| integer(text, &range))
    }

    /// Reads a whole number of this range, which `number` turns into a value; or one of these
    /// words, each with its value and its meaning.
    ///
    /// # Example
    /// A default that depends on the machine is a word. [`Params::build`] resolves it:
    /// ```
    /// use miserly_core::{Machine, Policy, Procs};
    /// use miserly_policies::{ParamReader, Params, PolicyError};
    /// # fn policy(_widest: Procs) -> Box<dyn Policy> { unimplemented!() }
    ///
    /// #[derive(Debug)]
    /// struct Widest(Option<u64>);
    ///
    /// fn read(params: &mut ParamReader<'_>) -> Result<Box<dyn Params>, PolicyError> {
    ///     let words = [("machine", None, "all processors of the machine")];
    ///     let doc = "the processors of the widest job that may start";
    ///     Ok(Box::new(Widest(params.integer_or("widest", (1..=1_000_000, Some), &words, "machine", doc)?)))
    /// }
    ///
    /// impl Params for Widest {
    ///     fn build(&self, machine: &Machine) -> Box<dyn Policy> {
    ///         policy(self.0.map_or(machine.capacity().cpus_count(), Procs::new))
    ///     }
    /// }
    /// ```
    pub fn integer_or<T: Clone>(
        &mut self,
        name: &'static str,
        (range, number): (RangeInclusive<u64>, fn(u64) -> T),
        words: &[(&'static str, T, &'static str)],
        default: &str,
        doc: &'static str,
    ) -> Result<T, PolicyError> {
        let domain = Domain::IntegerOr(*range.start(), *range.end(), meanings(words));
        self.plain(name, domain, default, doc, |text| {
            integer(text, &range).map(number).or_else(|| chosen(words, text))
        })
    }

    /// Reads a number that is not negative.
    pub fn number(
        &mut self,
        name: &'static str,
        default: f64,
        doc: &'static str,
    ) -> Result<f64, PolicyError> {
        self.plain(name, Domain::Number, &default.to_string(), doc, |text| domain::number(text, 0.0))
    }

    /// Reads a number of at least `least`; or one of these words, each with its value and its
    /// meaning.
    pub fn number_or<T: Clone>(
        &mut self,
        name: &'static str,
        (least, number): (f64, fn(f64) -> T),
        words: &[(&'static str, T, &'static str)],
        default: &str,
        doc: &'static str,
    ) -> Result<T, PolicyError> {
        let domain = Domain::NumberOr(least, meanings(words));
        self.plain(name, domain, default, doc, |text| {
            domain::number(text, least).map(number).or_else(|| chosen(words, text))
        })
    }

    /// Reads `N` numbers that are not negative; or this word with its meaning, which is the default
    /// and gives `None`.
    pub fn numbers_or<const N: usize>(
        &mut self,
        name: &'static str,
        word: (&'static str, &'static str),
        doc: &'static str,
    ) -> Result<Option<[f64; N]>, PolicyError> {
        let domain = Domain::NumbersOr(N, vec![word]);
        self.read(name, domain, word.0, doc, |written| {
            let text = written.text();
            let value = if text == word.0 { Some(None) } else { domain::numbers(text).map(Some) };
            Ok((value.ok_or(Mistake::NoValue)?, (text != word.0).then(|| quoted(text))))
        })
    }

    /// Reads one of these words, each with its value and its meaning.
    pub fn choice<T: Clone>(
        &mut self,
        name: &'static str,
        words: &[(&'static str, T, &'static str)],
        default: &str,
        doc: &'static str,
    ) -> Result<T, PolicyError> {
        self.plain(name, Domain::Choice(meanings(words)), default, doc, |text| chosen(words, text))
    }

    /// Reads a duration of at least `least` seconds.
    pub fn duration(
        &mut self,
        name: &'static str,
        least: u64,
        default: &str,
        doc: &'static str,
    ) -> Result<Span, PolicyError> {
        let domain = Domain::Duration { least, none: false };
        self.plain(name, domain, default, doc, |text| domain::duration(text, least))
    }

    /// Reads a duration of at least `least` seconds; or `none`.
    pub fn duration_or_none(
        &mut self,
        name: &'static str,
        least: u64,
        default: &str,
        doc: &'static str,
    ) -> Result<Option<Span>, PolicyError> {
        let domain = Domain::Duration { least, none: true };
        self.plain(name, domain, default, doc, |text| match text {
            _ if text == NEVER.0 => Some(None),
            _ => domain::duration(text, least).map(Some),
        })
    }

    /// Reads the horizon: the bound of promised starts and ends, counted from the submission.
    ///
    /// `None` is no bound. Callers can read and set the horizon of a policy:
    /// [`PolicySpec::horizon`], [`PolicySpec::with_horizon`].
    pub fn horizon(&mut self, default: &str, doc: &'static str) -> Result<Option<Span>, PolicyError> {
        let horizon = self.duration_or_none(HORIZON, 1, default, doc)?;
        self.horizon = Some(horizon.unwrap_or(Span::MAX));
        Ok(horizon)
    }

    /// Reads the seed of random draws, by default that of the run.
    pub fn seed(&mut self, doc: &'static str) -> Result<u64, PolicyError> {
        let (name, domain) = ("seed", Domain::Integer(0, u64::MAX));
        let given = self.given(name)?;
        let seed = match given {
            Some(written) => written.text().parse().map_err(|_| self.no_value(name, &domain, written))?,
            None => self.seed,
        };
        self.has_own_seed |= given.is_some();
        let given = given.map(|written| written.text().to_owned());
        self.declare(Param { name, domain, default: DefaultValue::SeedOfRun, doc }, given);
        Ok(seed)
    }

    /// Reads an order of the queue. [`order_settings`](ParamReader::order_settings) apply to it
    /// afterwards.
    pub fn order(
        &mut self,
        name: &'static str,
        default: &str,
        doc: &'static str,
    ) -> Result<Order, PolicyError> {
        let order = self.read(name, Domain::Order, default, doc, order)?;
        self.orders.random |= order.is_random();
        self.orders.usage |= order.usage_half_life().is_some();
        self.orders.shares |= order.uses_shares();
        self.orders.uses = self.orders.uses.or(order.uses());
        Ok(order)
    }

    /// Reads an order of the queue, by default that of the parameter `same_as`.
    pub fn order_like(
        &mut self,
        name: &'static str,
        (same_as, default): (&'static str, &Order),
        doc: &'static str,
    ) -> Result<Order, PolicyError> {
        if self.given(name)?.is_some() {
            let order = self.order(name, "arrival", doc)?;
            self.replace_default(DefaultValue::SameAs(same_as));
            return Ok(order);
        }
        let default_value = DefaultValue::SameAs(same_as);
        self.declare(Param { name, domain: Domain::Order, default: default_value, doc }, None);
        Ok(default.clone())
    }

    /// Reads the settings of all orders of the policy, which were read before: `weight`, `draw`, `seed`,
    /// `half_life` and `shares`.
    pub fn order_settings(&mut self) -> Result<OrderSettings, PolicyError> {
        const DRAWS: [(&str, Draw, &str); 2] = [
            ("once", Draw::Once, "one number for each job"),
            ("pass", Draw::Pass, "new numbers at each pass"),
        ];
        let weight = self.number(
            "weight",
            0.0,
            "aging: added to the sort key for each second of waiting, so that no job starves; with shortest the key is 1 / estimate",
        )?;
        let draw =
            self.choice("draw", &DRAWS, "once", "the time at which the numbers of a random order are drawn")?;
        let seed = self.seed("the seed of these draws")?;
        let half_life = self.half_life()?;
        let shares = self.shares()?;
        let weight = Weight::per_second(weight).unwrap_or_default();
        Ok(OrderSettings { weight, draw, seed, half_life, shares })
    }

    /// Declares limits of running jobs; without a value there are none.
    ///
    /// # Errors
    /// As the other methods.
    pub fn running_limits(
        &mut self,
        name: &'static str,
        doc: &'static str,
    ) -> Result<RunningLimits, PolicyError> {
        let read = |written: &WrittenValue| in_quotes(written, Mistake::Limits);
        Ok(self.read(name, Domain::RunningLimits, "none", doc, read)?.unwrap_or_default())
    }

    /// Reads rules of preemption.
    ///
    /// # Errors
    /// As the other methods.
    pub fn preemption(
        &mut self,
        name: &'static str,
        doc: &'static str,
    ) -> Result<PreemptionRules, PolicyError> {
        let read = |written: &WrittenValue| in_quotes(written, Mistake::Preemption);
        Ok(self.read(name, Domain::Preemption, "none", doc, read)?.unwrap_or_default())
    }

    /// Reads weights of resources.
    ///
    /// # Errors
    /// As the other methods.
    pub fn billing(&mut self, name: &'static str, doc: &'static str) -> Result<BillingWeights, PolicyError> {
        let read = |written: &WrittenValue| in_quotes(written, Mistake::Billing);
        Ok(self.read(name, Domain::Billing, "none", doc, read)?.unwrap_or_default())
    }

    fn shares(&mut self) -> Result<Option<ShareTree>, PolicyError> {
        let name = "shares";
        let doc = "the tree of the shares of users and groups, for orders that use fair_tree";
        let read = |written: &WrittenValue| in_quotes(written, Mistake::Shares);
        let shares = self.read(name, Domain::Shares, "none", doc, read)?;
        if shares.is_some() != self.orders.shares {
            return Err(PolicyError::SharesAlone { policy: self.policy.name, name });
        }
        Ok(shares)
    }

    fn half_life(&mut self) -> Result<Span, PolicyError> {
        let name = "half_life";
        let half_life = self.duration_or_none(
            name,
            1,
            "7d",
            "the age at which usage counts half, for orders that use usage or fair_tree",
        )?;
        if self.given(name)?.is_some() && !self.orders.usage {
            return Err(PolicyError::NoUsage { policy: self.policy.name, name });
        }
        Ok(half_life.unwrap_or(Span::MAX))
    }

    /// Reads a backfill policy, which runs within this one.
    pub fn inner(
        &mut self,
        name: &'static str,
        default: &str,
        doc: &'static str,
    ) -> Result<InnerPolicy, PolicyError> {
        let registry = self.registry;
        let domain = Domain::Policy(registry.clone());
        let spec = self.read(name, domain.clone(), default, doc, |written| {
            let spec = PolicySpec::parse(written.text(), registry);
            let spec = spec.map_err(|problem| Mistake::Policy(Box::new(problem)))?;
            let text = matches!(written, WrittenValue::Quoted(_)).then(|| quoted(&spec.to_string()));
            Ok((spec, text))
        })?;
        let params = spec.params(self.seed)?;
        self.orders.random |= spec.is_random();
        self.orders.uses = self.orders.uses.or(spec.order_uses());
        match params.backfill() {
            Some(point) => Ok(InnerPolicy { params, point }),
            None => Err(self.bad_value(name, &domain, &spec.to_string(), None)),
        }
    }

    /// Reads a value whose canonical form is the text as written.
    fn plain<T>(
        &mut self,
        name: &'static str,
        domain: Domain,
        default: &str,
        doc: &'static str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<T, PolicyError> {
        let parse = |written: &WrittenValue| match parse(written.text()) {
            Some(value) => Ok((value, None)),
            None => Err(Mistake::NoValue),
        };
        self.read(name, domain, default, doc, parse)
    }

    fn read<T>(
        &mut self,
        name: &'static str,
        domain: Domain,
        default: &str,
        doc: &'static str,
        parse: impl Fn(&WrittenValue) -> Parsed<T>,
    ) -> Result<T, PolicyError> {
        let given = self.given(name)?;
        let default_value = WrittenValue::Word(default.to_owned());
        let written = given.unwrap_or(&default_value);
        let (value, text) = parse(written).map_err(|mistake| match mistake {
            Mistake::NoValue => self.no_value(name, &domain, written),
            Mistake::Formula(problem) => PolicyError::BadFormula { policy: self.policy.name, name, problem },
            Mistake::Shares(problem) => PolicyError::BadShares { policy: self.policy.name, name, problem },
            Mistake::Limits(problem) => PolicyError::BadLimits { policy: self.policy.name, name, problem },
            Mistake::Billing(problem) => PolicyError::BadBilling { policy: self.policy.name, name, problem },
            Mistake::Preemption(problem) => {
                PolicyError::BadPreemption { policy: self.policy.name, name, problem }
            }
            Mistake::Policy(problem) => PolicyError::Within { policy: self.policy.name, name, problem },
        })?;
        let given = given.map(|written| text.unwrap_or_else(|| written.text().to_owned()));
        self.declare(Param { name, domain, default: DefaultValue::Is(default.to_owned()), doc }, given);
        Ok(value)
    }

    /// Returns the value that was written for this parameter.
    fn given(&self, name: &'static str) -> Result<Option<&'a WrittenValue>, PolicyError> {
        let mut given = self.written.iter().filter(|arg| arg.name == name);
        let value = given.next().map(|arg| &arg.value);
        match given.next() {
            Some(_) => Err(PolicyError::Twice { policy: self.policy.name, name: name.to_owned() }),
            None => Ok(value),
        }
    }

    fn declare(&mut self, param: Param, given: Option<String>) {
        debug_assert!(self.declared.iter().all(|other| other.param.name != param.name), "{}", param.name);
        self.declared.push(Declared { param, given });
    }

    fn replace_default(&mut self, default: DefaultValue) {
        if let Some(last) = self.declared.last_mut() {
            last.param.default = default;
        }
    }

    fn no_value(&self, name: &'static str, domain: &Domain, written: &WrittenValue) -> PolicyError {
        if matches!(domain, Domain::Order) && Priority::largest(written.text()).is_ok() {
            return PolicyError::Unquoted {
                policy: self.policy.name,
                name,
                value: written.text().to_owned(),
            };
        }
        self.bad_value(name, domain, written.text(), domain.nearest(written.text()))
    }

    fn bad_value(
        &self,
        name: &'static str,
        domain: &Domain,
        value: &str,
        nearest: Option<&'static str>,
    ) -> PolicyError {
        let (value, allowed) = (value.to_owned(), domain.to_string());
        PolicyError::BadValue { policy: self.policy.name, name, value, nearest, allowed }
    }

    /// Returns the declarations.
    pub(super) fn into_declared(self) -> Vec<Param> {
        self.declared.into_iter().map(|declared| declared.param).collect()
    }

    /// Returns the facts of a reader that has read all parameters.
    ///
    /// # Errors
    /// If a written parameter was not declared.
    pub(super) fn into_facts(self) -> Result<Facts, PolicyError> {
        let names = || self.declared.iter().map(|declared| declared.param.name);
        if let Some(unknown) = self.written.iter().find(|arg| names().all(|name| name != arg.name)) {
            return Err(PolicyError::UnknownParam {
                policy: self.policy.name,
                name: unknown.name.clone(),
                nearest: nearest(&unknown.name, names()),
                has: names().collect::<Vec<_>>().join(", "),
            });
        }
        let given = |declared: Declared| Some((declared.param.name, declared.given?));
        Ok(Facts {
            is_random: self.orders.random && !self.has_own_seed,
            horizon: self.horizon,
            uses: self.orders.uses,
            given: self.declared.into_iter().filter_map(given).collect(),
        })
    }
}

/// The name of the parameter that bounds promised starts and ends.
pub(super) const HORIZON: &str = "horizon";

fn meanings<T>(words: &[(&'static str, T, &'static str)]) -> Vec<(&'static str, &'static str)> {
    words.iter().map(|(word, _, meaning)| (*word, *meaning)).collect()
}

fn chosen<T: Clone>(words: &[(&'static str, T, &'static str)], text: &str) -> Option<T> {
    words.iter().find(|(word, ..)| *word == text).map(|(_, value, _)| value.clone())
}

fn integer(text: &str, range: &RangeInclusive<u64>) -> Option<u64> {
    text.parse().ok().filter(|number| range.contains(number))
}

/// Returns the order that `written` denotes: a formula in quotes, or the name of an order.
fn order(written: &WrittenValue) -> Parsed<Order> {
    let WrittenValue::Quoted(text) = written else {
        return Ok((domain::order(written.text()).ok_or(Mistake::NoValue)?, None));
    };
    let priority = Priority::largest(text).map_err(|problem| Mistake::Formula(problem.into()))?;
    let order = Order::by_formula(priority);
    let text = order.formula().map_or_else(|| text.clone(), |formula| quoted(&formula.to_string()));
    Ok((order, Some(text)))
}

/// Returns the value in quotes that `written` denotes, if it is not `none`.
fn in_quotes<T: FromStr + ToString>(
    written: &WrittenValue,
    mistake: fn(T::Err) -> Mistake,
) -> Parsed<Option<T>> {
    match written {
        WrittenValue::Quoted(text) => {
            let value: T = text.parse().map_err(mistake)?;
            let text = quoted(&value.to_string());
            Ok((Some(value), Some(text)))
        }
        WrittenValue::Word(text) if text == "none" => Ok((None, None)),
        WrittenValue::Word(_) => Err(Mistake::NoValue),
    }
}

fn quoted(text: &str) -> String {
    format!("'{text}'")
}
