//! The table: which jobs it lists, in which order, and which one is selected.

use std::cmp::Ordering;

use miserly_view::{Line, State};

miserly_core::listed_enum! {
    /// The jobs that are listed.
    #[derive(Default)]
    pub(crate) enum Tab {
        #[default]
        All "all",
        Waiting "waiting",
        Running "running",
        Ended "ended",
    }
}

impl Tab {
    /// Returns whether it lists jobs in this state.
    pub(crate) fn admits(self, state: State) -> bool {
        match self {
            Tab::All => true,
            Tab::Waiting => state.is_before_start(),
            Tab::Running => state.holds(),
            Tab::Ended => state == State::Ended,
        }
    }
}

miserly_core::listed_enum! {
    /// A column of the table.
    pub(crate) enum Column {
        Job "JOB",
        Name "NAME",
        User "USER",
        Pool "POOL",
        Cpus "CPUS",
        State "STATE",
        Start "START",
        Likely "LIKELY",
        End "END",
    }
}

impl Column {
    /// Returns the text of a job in it.
    pub(crate) fn text(self, line: &Line) -> String {
        match self {
            Column::Job => line.job.label.clone(),
            Column::Name => line.job.name.clone(),
            Column::User => line.job.user.clone(),
            Column::Pool => line.pool_name.clone().unwrap_or_default(),
            Column::Cpus => line.job.procs.to_string(),
            Column::State => line.job.word.clone(),
            Column::Start => line.start_text.clone(),
            Column::Likely => line.likely_text.as_ref().map_or_else(|| "-".to_owned(), |[at, _]| at.clone()),
            Column::End => line.end_text.clone(),
        }
    }

    /// Returns whether the table has it: some of its texts depend on the machine.
    pub(crate) fn is_of(self, lines: &[Line]) -> bool {
        match self {
            Column::Likely => lines.iter().any(|line| line.likely_text.is_some()),
            Column::Pool => lines.iter().any(|line| line.pool_name.is_some()),
            _ => true,
        }
    }

    fn compare(self, one: &Line, other: &Line) -> Ordering {
        let (a, b) = (&one.job, &other.job);
        let start = |line: &Line| {
            let job = &line.job;
            let actual = job.start.filter(|_| !job.state.is_before_start());
            actual.or(job.promised).or(job.planned).unwrap_or(i64::MAX)
        };
        let end = |line: &Line| line.job.end.unwrap_or_else(|| start(line).saturating_add(line.job.limit));
        match self {
            Column::Job => Ordering::Equal,
            Column::Name => a.name.cmp(&b.name),
            Column::User => a.user.cmp(&b.user),
            Column::Pool => a.pool.cmp(&b.pool),
            Column::Cpus => b.procs.cmp(&a.procs),
            Column::State => a.word.cmp(&b.word),
            Column::Start => start(one).cmp(&start(other)),
            Column::Likely => {
                let likely = |line: &Line| line.job.likely.map_or(i64::MAX, |[median, ..]| median);
                likely(one).cmp(&likely(other))
            }
            Column::End => end(one).cmp(&end(other)),
        }
        .then(a.number.cmp(&b.number))
    }
}

/// The table of jobs.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct List {
    pub(crate) tab: Tab,
    /// Whether each array is one row.
    pub(crate) has_arrays: bool,
    /// Whether it lists only the jobs of the user.
    pub(crate) mine: bool,
    /// The column by which it is sorted; `None` is the order of the moment.
    pub(crate) sort: Option<Column>,
    pub(crate) reversed: bool,
    /// The text that is searched.
    pub(crate) needle: String,
    /// The first row that is shown.
    pub(crate) top: usize,
    /// The rows, as places among the jobs, each with its number.
    rows: Vec<(usize, i64)>,
    selected: Option<i64>,
    /// Whether the user selected the job. Until then the first row is selected.
    chosen: bool,
    /// The row of the selected job, also after it has gone.
    at: usize,
    /// The rows that are shown at a time.
    page: usize,
}

impl Default for List {
    fn default() -> List {
        List {
            tab: Tab::All,
            has_arrays: true,
            mine: false,
            sort: None,
            reversed: false,
            needle: String::new(),
            top: 0,
            rows: vec![],
            selected: None,
            chosen: false,
            at: 0,
            page: 0,
        }
    }
}

impl List {
    /// Returns the number of jobs that it lists.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns the number of the selected job.
    pub(crate) fn selected(&self) -> Option<i64> {
        self.selected
    }

    /// Returns the number of the job that the user selected.
    pub(crate) fn chosen(&self) -> Option<i64> {
        self.selected.filter(|_| self.chosen)
    }

    /// Returns the listed jobs.
    pub(crate) fn rows<'a>(&self, lines: &'a [Line]) -> impl Iterator<Item = &'a Line> {
        self.rows.iter().filter_map(|(place, _)| lines.get(*place))
    }

    /// Lists these jobs and arrays, `page` at a time. A job that the user selected stays selected, and with `keep` any job does. If it has gone,
    /// the one in its row is selected. In all other cases the first row is selected.
    pub(crate) fn settle(&mut self, lines: &[Line], page: usize, keep: bool) {
        self.page = page.max(1);
        let admitted = |line: &Line| self.tab.admits(line.job.state) && (line.own || !self.mine);
        let mut rows: Vec<usize> = (0..lines.len()).filter(|place| admitted(&lines[*place])).collect();
        if let Some(column) = self.sort {
            rows.sort_by(|one, other| column.compare(&lines[*one], &lines[*other]));
        }
        if self.reversed {
            rows.reverse();
        }
        self.rows = rows.into_iter().map(|place| (place, lines[place].job.number)).collect();
        let kept = self.rows.iter().position(|(_, number)| Some(*number) == self.selected);
        self.move_to(if self.chosen || keep { kept.unwrap_or(self.at) } else { 0 });
    }

    /// Scrolls by rows. The selection moves as little as it must to be seen.
    pub(crate) fn scroll(&mut self, rows: isize) {
        let last_top = self.rows.len().saturating_sub(self.page);
        self.top = self.top.saturating_add_signed(rows).min(last_top);
        let last = (self.top + self.page).saturating_sub(1);
        let seen = self.at.clamp(self.top, last.max(self.top));
        if seen != self.at {
            self.select(seen);
        }
    }

    /// Moves the selection by rows.
    pub(crate) fn step(&mut self, rows: isize) {
        self.select(self.at.saturating_add_signed(rows));
    }

    /// Moves the selection by pages.
    pub(crate) fn turn(&mut self, pages: isize) {
        self.step(pages * isize::try_from(self.page).unwrap_or(1));
    }

    /// Selects a row, or the last one. From now on its job stays selected.
    pub(crate) fn select(&mut self, row: usize) {
        self.chosen = true;
        self.move_to(row);
    }

    /// Selects the first row, whichever job it has.
    pub(crate) fn select_first(&mut self) {
        self.chosen = false;
        self.move_to(0);
    }

    fn move_to(&mut self, row: usize) {
        self.at = row.min(self.rows.len().saturating_sub(1));
        self.selected = self.rows.get(self.at).map(|(_, number)| *number);
        let last_top = self.rows.len().saturating_sub(self.page);
        self.top = self.top.clamp((self.at + 1).saturating_sub(self.page), self.at).min(last_top);
    }

    /// Selects a job, if it is listed, or the first row if none is given.
    pub(crate) fn select_job(&mut self, number: Option<i64>) {
        if number.is_none() {
            return self.select_first();
        }
        if let Some(row) = self.rows.iter().position(|(_, listed)| Some(*listed) == number) {
            self.select(row);
        }
    }

    /// Selects the next job with the text that is searched, after the selected one or at it. Returns whether there is one.
    pub(crate) fn find(&mut self, lines: &[Line], backward: bool, or_here: bool) -> bool {
        let count = self.rows.len();
        let first = usize::from(!or_here);
        let row = |distance| (if backward { self.at + count - distance } else { self.at + distance }) % count;
        let is_it = |row: &usize| lines.get(self.rows[*row].0).is_some_and(|line| self.matches(line));
        let found = (first..count + first).map(row).find(is_it);
        if let Some(row) = found {
            self.select(row);
        }
        found.is_some()
    }

    /// Returns whether a job has the text that is searched.
    pub(crate) fn matches(&self, line: &Line) -> bool {
        let needle = self.needle.to_lowercase();
        let has = |text: &str| text.to_lowercase().contains(&needle);
        let has_pool = || line.pool_name.as_deref().is_some_and(has);
        let has_text = || {
            has(&line.job.name)
                || has(&line.job.label)
                || has(&line.job.number.to_string())
                || has(&line.job.user)
                || has_pool()
        };
        !needle.is_empty() && has_text()
    }

    /// Sorts by the next column of these jobs, and by none after the last one.
    pub(crate) fn sort_next(&mut self, lines: &[Line]) {
        let next = match self.sort {
            None => Some(0),
            Some(column) => Column::ALL.iter().position(|one| *one == column).map(|at| at + 1),
        };
        let later = next.and_then(|at| Column::ALL.get(at..)).unwrap_or_default();
        self.sort = later.iter().copied().find(|column| column.is_of(lines));
        self.top = 0;
    }
}
