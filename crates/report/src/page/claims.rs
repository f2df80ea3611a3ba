//! Claims as tables: one line per claim, and one per reading that was tried.

use super::data::{Claim, ClaimVerdict, Emphasis, TableCell, TableData};

impl ClaimVerdict {
    /// Returns the verdict in words.
    pub fn words(self) -> &'static str {
        match self {
            ClaimVerdict::Holds => "holds",
            ClaimVerdict::DoesNotHold => "does not hold",
            ClaimVerdict::Unknown => "not decided",
            ClaimVerdict::Untestable => "cannot be tested",
        }
    }

    fn cell(self) -> TableCell {
        TableCell::text(self.words()).with(match self {
            ClaimVerdict::Holds => Emphasis::Good,
            ClaimVerdict::DoesNotHold => Emphasis::Bad,
            ClaimVerdict::Unknown | ClaimVerdict::Untestable => Emphasis::Muted,
        })
    }
}

/// Returns the claims, and below them the readings that were tried for those that do not hold, and those that turn a
/// claim that holds.
pub(super) fn tables(claims: &[Claim]) -> impl Iterator<Item = TableData> {
    std::iter::once(lines(claims)).chain(readings(claims))
}

fn lines(claims: &[Claim]) -> TableData {
    let line = |claim: &Claim| {
        vec![
            TableCell::text(&claim.text),
            TableCell::text(&claim.section),
            TableCell::text(&claim.figures),
            claim.verdict.cell(),
            TableCell::text(why(claim)),
        ]
    };
    let header = ["claim", "section", "ours", "result", "why"];
    let mut data = TableData {
        caption: None,
        header: vec![header.map(str::to_owned).into()],
        rows: claims.iter().map(line).collect(),
    };
    // Only claims of experiments have a section and a reason.
    for column in [4, 1] {
        if data.rows.iter().all(|row| row[column].text.is_empty()) {
            data.header.iter_mut().for_each(|row| drop(row.remove(column)));
            data.rows.iter_mut().for_each(|row| drop(row.remove(column)));
        }
    }
    data
}

/// Returns the reason, and how many other readings there are with the same verdict.
fn why(claim: &Claim) -> String {
    let tried = claim.readings.len();
    let hold = claim.readings.iter().filter(|reading| reading.verdict == ClaimVerdict::Holds).count();
    let readings =
        if tried == 0 { String::new() } else { format!("Holds in {hold} of {tried} other readings.") };
    [claim.why.as_str(), &readings].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

fn readings(claims: &[Claim]) -> Option<TableData> {
    let tried = |claim: &Claim| {
        let told = claim
            .readings
            .iter()
            .filter(|reading| claim.verdict == ClaimVerdict::DoesNotHold || reading.verdict != claim.verdict);
        let line = |(name, verdict, figures): (&str, ClaimVerdict, &str)| {
            vec![
                TableCell::text(&claim.text),
                TableCell::text(name),
                TableCell::text(figures),
                verdict.cell(),
            ]
        };
        told.map(|reading| line((&reading.name, reading.verdict, &reading.figures))).collect::<Vec<_>>()
    };
    let rows: Vec<_> = claims.iter().flat_map(tried).collect();
    let header = ["claim", "other reading", "ours", "result"].map(str::to_owned);
    let caption = Some("Other readings of what the paper leaves open.".to_owned());
    (!rows.is_empty()).then_some(TableData { caption, header: vec![header.into()], rows })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::ReadClaim;

    fn claim(verdict: ClaimVerdict, readings: &[ClaimVerdict]) -> Claim {
        let readings = readings.iter().enumerate().map(|(at, verdict)| ReadClaim {
            name: format!("reading {at}"),
            verdict: *verdict,
            figures: "3".into(),
        });
        Claim { text: "a < b".into(), verdict, readings: readings.collect(), ..Claim::default() }
    }

    fn names(claims: &[Claim]) -> Vec<String> {
        readings(claims).into_iter().flat_map(|data| data.rows).map(|row| row[1].text.clone()).collect()
    }

    #[test]
    fn all_readings_of_a_claim_that_does_not_hold_and_only_those_that_turn_another() {
        use ClaimVerdict::{DoesNotHold, Holds};
        assert_eq!(names(&[claim(DoesNotHold, &[DoesNotHold, Holds])]), ["reading 0", "reading 1"]);
        assert_eq!(names(&[claim(Holds, &[DoesNotHold, Holds])]), ["reading 0"]);
        assert_eq!(why(&claim(DoesNotHold, &[DoesNotHold, Holds])), "Holds in 1 of 2 other readings.");
    }

    #[test]
    fn columns_without_text_are_left_out() {
        let header = |claim: Claim| lines(&[claim]).header.concat();
        assert_eq!(header(claim(ClaimVerdict::Holds, &[])), ["claim", "ours", "result"]);
        let with = Claim { section: "§2".into(), ..claim(ClaimVerdict::Holds, &[]) };
        assert_eq!(header(with), ["claim", "section", "ours", "result"]);
    }
}
