//! The rules of a calendar: from texts to minutes of a week.

use miserly_core::{Kind, Resources};
use toml::{Spanned, Value};

use crate::file::RuleFile;
use crate::problem::Problem;
use crate::quantity::kilobytes;
use crate::week::{DAY, DAYS, Minute, WEEK, Week};

/// More processors than any machine has.
const CPUS_MOST: i64 = 1 << 30;

/// The settings of a pool: its resources, and the calendar of changes.
pub(crate) struct PoolText<'a> {
    /// The name of its owner, for messages.
    pub(crate) owner: String,
    pub(crate) cpus: Option<&'a Spanned<i64>>,
    pub(crate) memory: Option<&'a Spanned<Value>>,
    pub(crate) calendar: &'a [Spanned<RuleFile>],
    /// Its resources where a setting is missing.
    pub(crate) otherwise: Resources,
}

impl PoolText<'_> {
    /// Returns the pool over a week, by a clock that many minutes ahead of UTC.
    pub(crate) fn week(&self, ahead: i32) -> Result<Week, Problem> {
        let base = self.amount(self.cpus, self.memory, self.otherwise)?;
        let mut minutes: Vec<Option<Resources>> = vec![None; WEEK as usize];
        for rule in self.calendar {
            let file = rule.get_ref();
            let amount = self.amount_of(rule, base)?;
            for minute in self.minutes(file)? {
                let taken = minutes[minute as usize].replace(amount);
                if taken.is_some() {
                    let text = format!("two rules of the calendar are about {}; let one be", Minute(minute));
                    return Err(self.problem(rule, &text));
                }
            }
        }
        let mut steps: Vec<(u32, Resources)> = Vec::new();
        for (minute, amount) in (0..).zip(minutes) {
            let amount = amount.unwrap_or(base);
            if steps.last().is_none_or(|(_, last)| *last != amount) {
                steps.push((minute, amount));
            }
        }
        Ok(Week { ahead, steps })
    }

    /// Returns the resources during a rule; `base` at all other times.
    fn amount_of(&self, rule: &Spanned<RuleFile>, base: Resources) -> Result<Resources, Problem> {
        let file = rule.get_ref();
        if file.cpus.is_none() && file.memory.is_none() {
            return Err(self
                .problem(rule, "a rule of the calendar that changes nothing; say cpus or memory, or both"));
        }
        let amount = self.amount(file.cpus.as_ref(), file.memory.as_ref(), base)?;
        if amount.get(Kind::Memory) > 0 && base.get(Kind::Memory) == 0 {
            let text = "memory in the calendar, and none besides; give it to both or to none";
            return Err(self.problem(rule, text));
        }
        Ok(amount)
    }

    fn problem<T>(&self, at: &Spanned<T>, text: &str) -> Problem {
        Problem::new(at.span(), format!("{}: {text}", self.owner))
    }

    fn amount(
        &self,
        cpus: Option<&Spanned<i64>>,
        memory: Option<&Spanned<Value>>,
        other: Resources,
    ) -> Result<Resources, Problem> {
        let mut amount = other;
        if let Some(cpus) = cpus {
            let count = u64::try_from(*cpus.get_ref()).ok().filter(|_| *cpus.get_ref() <= CPUS_MOST);
            let text = format!("cpus = {}: must be 0 to {CPUS_MOST}", cpus.get_ref());
            amount = amount.with(Kind::Cpus, count.ok_or_else(|| self.problem(cpus, &text))?);
        }
        if let Some(memory) = memory {
            let known = kilobytes(memory.get_ref())
                .map_err(|text| self.problem(memory, &format!("memory: {text}")))?;
            amount = amount.with(Kind::Memory, known);
        }
        Ok(amount)
    }

    /// Returns the minutes of the week that a rule is about.
    fn minutes(&self, rule: &RuleFile) -> Result<Vec<u32>, Problem> {
        let time = |text: &Spanned<String>| {
            let form = format!("{:?} is no time of the day; write it as 08:00", text.get_ref());
            clock(text.get_ref()).ok_or_else(|| self.problem(text, &form))
        };
        let from = rule.from.as_ref().map_or(Ok(0), time)?;
        let to = rule.to.as_ref().map_or(Ok(DAY), time)?;
        let days = match &rule.days {
            None => (0..7).collect(),
            Some(text) => {
                let form = format!("days = {:?}: write them as mon-fri, or sat,sun", text.get_ref());
                days(text.get_ref()).ok_or_else(|| self.problem(text, &form))?
            }
        };
        let length = if to > from { to - from } else { to + DAY - from };
        let of_day = |day: u32| (0..length).map(move |minute| (day * DAY + from + minute) % WEEK);
        Ok(days.into_iter().flat_map(of_day).collect())
    }
}

/// Returns the minutes from the beginning of a day to `08:00`; `24:00` is its end.
pub(crate) fn clock(text: &str) -> Option<u32> {
    let (hours, minutes) = text.split_once(':')?;
    let number = |digits: &str| {
        let plain = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| digits.parse::<u32>().ok()).flatten()
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let all = hours * 60 + minutes;
    (minutes < 60 && all <= DAY).then_some(all)
}

/// Returns the days of `mon-fri,sun`; `None` if a day is named twice.
fn days(text: &str) -> Option<Vec<u32>> {
    let day = |name: &str| {
        let known = DAYS.iter().position(|known| name.trim().eq_ignore_ascii_case(known))?;
        u32::try_from(known).ok()
    };
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (day(first)?, day(last)?);
        // Weekends go round: fri-mon.
        let length = (last + 7 - first) % 7;
        all.extend((0..=length).map(|offset| (first + offset) % 7));
    }
    let mut once = all.clone();
    once.sort_unstable();
    once.dedup();
    (once.len() == all.len()).then_some(once)
}
