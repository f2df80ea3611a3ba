//! How much there is, over a week that repeats.

use std::collections::BTreeSet;

use miserly_core::{Calendar, Kind, Resources, Span, Time};
use toml::Spanned;

use super::error::Problem;
use super::file::RuleFile;
use super::units;

/// Minutes of a day.
const DAY: u32 = 24 * 60;

/// Minutes of a week.
const WEEK: u32 = 7 * DAY;

/// A Monday at midnight in Greenwich, in minutes since 1970.
const MONDAY: i64 = 4 * DAY as i64;

const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// How much there is, the same every week: base amounts, and others at certain hours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weekly {
    base: Resources,
    rules: Vec<Rule>,
    /// How far east of Greenwich the hours are meant, minutes.
    utc_offset: i32,
}

/// An amount at some hours of some days.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    days: [bool; 7],
    /// Minutes of the day.
    from: u32,
    /// Minutes of the day; where it is not after `from`, of the next day.
    to: u32,
    amount: Resources,
}

impl Rule {
    /// Whether it holds at that minute of the week.
    fn holds(&self, minute: u32) -> bool {
        let (day, time) = ((minute / DAY) as usize, minute % DAY);
        let yesterday = (day + 6) % 7;
        if self.from < self.to {
            self.days[day] && (self.from..self.to).contains(&time)
        } else {
            (self.days[day] && time >= self.from) || (self.days[yesterday] && time < self.to)
        }
    }
}

impl Weekly {
    /// The same at all times.
    pub(super) fn constant(base: Resources) -> Weekly {
        Weekly { base, rules: Vec::new(), utc_offset: 0 }
    }

    /// Base amounts and the rules as they are written; what a rule does not say is as the base.
    pub(super) fn checked(
        base: Resources,
        rules: &[Spanned<RuleFile>],
        utc_offset: i32,
    ) -> Result<Weekly, Problem> {
        let rules = rules.iter().map(|written| rule(written, base)).collect::<Result<_, _>>()?;
        Ok(Weekly { base, rules, utc_offset })
    }

    /// What there is at a minute of the week: as the last rule says that holds then.
    pub(super) fn at(&self, minute: u32) -> Resources {
        let rule = self.rules.iter().rev().find(|rule| rule.holds(minute));
        rule.map_or(self.base, |rule| rule.amount)
    }

    /// The minutes of the week at which there may be another amount than before, the first minute among them.
    pub(super) fn changes(&self) -> BTreeSet<u32> {
        let days = |minute: u32| (0..7).map(move |day| (day * DAY + minute) % WEEK);
        let ends = self.rules.iter().flat_map(|rule| [rule.from, rule.to]);
        ends.flat_map(days).chain([0]).collect()
    }

    /// The most that there ever is of each kind.
    pub fn most(&self) -> Resources {
        self.changes()
            .into_iter()
            .map(|minute| self.at(minute))
            .fold(Resources::NONE, |most, at| most.most(&at))
    }

    /// As a calendar whose time 0 is `zero`, in microseconds since 1970.
    pub fn calendar(&self, zero: i64) -> Calendar {
        let minutes = |minutes: i64| Span::from_ticks(minutes * 60_000_000);
        let mut steps: Vec<(Span, Resources)> = Vec::new();
        for minute in self.changes() {
            let amount = self.at(minute);
            if steps.last().is_none_or(|(_, last)| *last != amount) {
                steps.push((minutes(minute.into()), amount));
            }
        }
        let origin = Time::from_ticks(-zero) + minutes(MONDAY - i64::from(self.utc_offset));
        // Constant where there is one step; else the first is at the first minute, and they rise within the week.
        let repeating = || Calendar::repeating(origin, minutes(WEEK.into()), steps.clone());
        (steps.len() > 1).then(repeating).flatten().unwrap_or_else(|| Calendar::constant(self.at(0)))
    }

    /// An instant of the week as people name it.
    pub(super) fn instant(minute: u32) -> String {
        format!("{} {:02}:{:02}", DAYS[(minute / DAY) as usize % 7], minute % DAY / 60, minute % 60)
    }
}

fn rule(written: &Spanned<RuleFile>, base: Resources) -> Result<Rule, Problem> {
    let file = written.get_ref();
    let days = file
        .days
        .as_ref()
        .map_or(Ok([true; 7]), |text| days(text.get_ref()).map_err(|problem| (text.span(), problem)))?;
    let (from, to) = (minute(file.from.as_ref(), "from")?, minute(file.to.as_ref(), "to")?);
    let amount = amount(file.cpus.as_ref(), file.memory.as_ref(), base)?;
    if amount == base {
        return Err((
            written.span(),
            "calendar: the amounts are those of all other times; say cpus or memory".into(),
        ));
    }
    let whole_day = (0, DAY);
    let (from, to) = match (from, to) {
        (None, None) => whole_day,
        (from, to) => (from.unwrap_or(0) % DAY, to.unwrap_or(DAY)),
    };
    if from == to {
        return Err((written.span(), "calendar: from and to are the same".into()));
    }
    Ok(Rule { days, from, to, amount })
}

/// What is written, in place of what would be.
pub(super) fn amount(
    cpus: Option<&Spanned<i64>>,
    memory: Option<&Spanned<toml::Value>>,
    instead: Resources,
) -> Result<Resources, Problem> {
    let mut amount = instead;
    if let Some(written) = cpus {
        let cpus = u64::try_from(*written.get_ref()).ok().filter(|&cpus| cpus <= 1 << 30);
        let cpus =
            cpus.ok_or_else(|| (written.span(), format!("cpus = {}: it is 0 or more", written.get_ref())))?;
        amount = amount.with(Kind::Cpus, cpus);
    }
    if let Some(written) = memory {
        let kilobytes = units::kilobytes(written.get_ref());
        amount = amount
            .with(Kind::Memory, kilobytes.map_err(|problem| (written.span(), format!("memory: {problem}")))?);
    }
    Ok(amount)
}

/// `mon-fri`, `sat,sun`, `fri-mon`.
fn days(text: &str) -> Result<[bool; 7], String> {
    let problem =
        || format!("days = {text:?}: write days or ranges of days, such as \"mon-fri\" or \"sat,sun\"");
    let day = |name: &str| DAYS.iter().position(|day| *day == name.trim()).ok_or_else(problem);
    let mut all = [false; 7];
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (day(first)?, day(last)?);
        for after in 0..=(last + 7 - first) % 7 {
            all[(first + after) % 7] = true;
        }
    }
    Ok(all)
}

/// The minute of the day; `24:00` is the end of it.
fn minute(written: Option<&Spanned<String>>, field: &str) -> Result<Option<u32>, Problem> {
    let Some(written) = written else { return Ok(None) };
    let text = written.get_ref();
    let number = |digits: &str| digits.parse::<u32>().ok().filter(|_| digits.len() == 2);
    let read = text.split_once(':').and_then(|(hours, minutes)| {
        let (hours, minutes) = (number(hours)?, number(minutes)?);
        Some(hours * 60 + minutes).filter(|&minute| minutes < 60 && minute <= DAY)
    });
    let problem = || (written.span(), format!("{field} = {text:?}: write a time of day as \"08:00\""));
    read.map(Some).ok_or_else(problem)
}

/// `+01:00`, `-05:30`: how far east of Greenwich, minutes.
pub(super) fn utc_offset(written: Option<&Spanned<String>>) -> Result<i32, Problem> {
    let Some(written) = written else { return Ok(0) };
    let text = written.get_ref();
    let read = || {
        let (sign, rest) = match text.split_at_checked(1)? {
            ("+", rest) => (1, rest),
            ("-", rest) => (-1, rest),
            _ => return None,
        };
        let (hours, minutes) = rest.split_once(':')?;
        let number = |digits: &str| digits.parse::<i32>().ok().filter(|_| digits.len() == 2);
        let (hours, minutes) = (number(hours)?, number(minutes)?);
        ((0..=18).contains(&hours) && (0..60).contains(&minutes)).then_some(sign * (hours * 60 + minutes))
    };
    read().ok_or_else(|| (written.span(), format!("utc-offset = {text:?}: write it as \"+01:00\"")))
}
