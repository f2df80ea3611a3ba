//! The shown part of the facts.

use std::sync::Arc;

use miserly_view::{Bars, Facts, Line, Moment, PoolFacts, with_arrays};

use super::Tab;
use crate::MINUTE;

/// The state at an instant, ready to be drawn.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) facts: Arc<Facts>,
    /// The moment, without its jobs.
    pub(crate) moment: Moment,
    /// The jobs of the moment: waiting, running, ended.
    pub(crate) lines: Vec<Line>,
    /// The same with each array as one line, for each tab.
    united: [Vec<Line>; Tab::ALL.len()],
    pub(crate) bars: Bars,
}

impl View {
    /// Returns the shown part of these facts.
    pub(crate) fn new(facts: &Arc<Facts>) -> View {
        let mut moment = Moment::new(facts);
        let of_state = [&mut moment.waiting, &mut moment.running, &mut moment.ended].map(std::mem::take);
        let [waiting, running, ended] = of_state.each_ref().map(|lines| with_arrays(facts, lines));
        let lines = of_state.concat();
        View {
            facts: Arc::clone(facts),
            bars: Bars::new(&facts.schedule()),
            moment,
            united: [with_arrays(facts, &lines), waiting, running, ended],
            lines,
        }
    }

    /// Returns the lines of which a tab lists those that it admits: jobs, or arrays as one line each.
    pub(crate) fn listed(&self, tab: Tab, has_arrays: bool) -> &[Line] {
        if has_arrays { &self.united[tab as usize] } else { &self.lines }
    }
}

/// Returns whether two facts are shown in the same way.
pub(crate) fn is_same(one: &Facts, other: &Facts) -> bool {
    is_same_minute(one.now, other.now)
        && one.account == other.account
        && one.pools.len() == other.pools.len()
        && one.pools.iter().zip(&other.pools).all(|(one, other)| is_same_pool(one, other))
        && one.jobs == other.jobs
}

pub(crate) fn is_same_minute(one: i64, other: i64) -> bool {
    one.div_euclid(MINUTE) == other.div_euclid(MINUTE)
}

/// Returns whether two pools are the same. The begin of the first slice is the present, which does not count.
fn is_same_pool(one: &PoolFacts, other: &PoolFacts) -> bool {
    let free = |pool: &PoolFacts| pool.slices.first().map(|first| (first.cpus, first.cpus_free));
    let later = |pool: &PoolFacts| pool.slices.get(1..).unwrap_or_default().to_vec();
    free(one) == free(other)
        && later(one) == later(other)
        && PoolFacts { slices: vec![], ..one.clone() } == PoolFacts { slices: vec![], ..other.clone() }
}
