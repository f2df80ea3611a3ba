//! Records that are sorted in bounded memory: what does not fit is in a temporary file.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::swf::{Extra, ExtraColumns, Record};

/// The most bytes of packed records that are held to be sorted. Larger logs are sorted in parts of this size.
const HELD: usize = 1 << 26;

/// The bytes of a part that are read at once.
const CHUNK: usize = 1 << 16;

/// The bytes before a record, with its length.
const LENGTH: usize = 4;

/// A sort of records by a key. Those with the same key stay in their order.
///
/// It holds some 64 MB of packed records, with their keys. Where there are more, they go to an unnamed file in the folder
/// of temporary files, in sorted parts.
pub struct Sorter<K> {
    key: fn(&Record) -> K,
    held: usize,
    bytes: Vec<u8>,
    index: Vec<(K, u32)>,
    file: Option<BufWriter<File>>,
    runs: Vec<Run>,
    last: Option<K>,
    /// Bytes in the file.
    written: u64,
    count: u64,
    extras: [bool; Extra::ALL.len()],
}

/// A sorted part.
#[derive(Debug)]
struct Run {
    begin: u64,
    end: u64,
}

/// Sorted records that can be read again and again.
#[derive(Debug)]
pub struct Sorted<K> {
    key: fn(&Record) -> K,
    store: Store,
    runs: Vec<Run>,
    count: u64,
    extras: [bool; Extra::ALL.len()],
}

#[derive(Debug)]
enum Store {
    Memory(Vec<u8>),
    File(File),
}

impl<K: Ord + Copy> Sorter<K> {
    /// Creates a sort by `key`.
    pub fn new(key: fn(&Record) -> K) -> Sorter<K> {
        Sorter::holding(HELD, key)
    }

    fn holding(held: usize, key: fn(&Record) -> K) -> Sorter<K> {
        Sorter {
            key,
            held,
            bytes: vec![],
            index: vec![],
            file: None,
            runs: vec![],
            last: None,
            written: 0,
            count: 0,
            extras: [false; Extra::ALL.len()],
        }
    }

    /// Adds a record.
    ///
    /// # Errors
    /// The temporary file cannot be made or written.
    pub fn push(&mut self, record: &Record) -> io::Result<()> {
        if self.bytes.len() >= self.held {
            self.write()?;
        }
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(&[0; LENGTH]);
        record.pack(&mut self.bytes);
        let too_long = |_| io::Error::other("a job of more than 4 GB");
        let length = u32::try_from(self.bytes.len() - begin - LENGTH).map_err(too_long)?;
        self.bytes[begin..begin + LENGTH].copy_from_slice(&length.to_le_bytes());
        self.index.push(((self.key)(record), u32::try_from(begin).map_err(too_long)?));
        record.extras().note(&mut self.extras);
        self.count += 1;
        Ok(())
    }

    /// Returns the number of records.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sorts the records that are held. Returns whether they were in order.
    fn sort(&mut self) -> bool {
        let is_sorted = self.index.is_sorted_by_key(|(key, _)| *key);
        if !is_sorted {
            self.index.sort_unstable();
        }
        is_sorted
    }

    /// Writes the records that are held as a part, or as the rest of one that ends before them.
    fn write(&mut self) -> io::Result<()> {
        let is_sorted = self.sort();
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(BufWriter::with_capacity(CHUNK, tempfile::tempfile()?)),
        };
        if is_sorted {
            file.write_all(&self.bytes)?;
        } else {
            self.index.iter().try_for_each(|(_, begin)| file.write_all(packed(&self.bytes, *begin)))?;
        }
        let begin = self.written;
        self.written += self.bytes.len() as u64;
        let [first, last] = [self.index.first(), self.index.last()].map(|end| end.map(|(key, _)| *key));
        match self.runs.last_mut().filter(|_| self.last <= first) {
            Some(run) => run.end = self.written,
            None => self.runs.push(Run { begin, end: self.written }),
        }
        self.last = last;
        self.bytes.clear();
        self.index.clear();
        Ok(())
    }

    /// Ends the sort.
    ///
    /// # Errors
    /// The temporary file cannot be written.
    pub fn finish(mut self) -> io::Result<Sorted<K>> {
        if self.file.is_some() {
            self.write()?;
        } else if !self.sort() {
            let records = self.index.iter().map(|(_, begin)| packed(&self.bytes, *begin));
            self.bytes = records.collect::<Vec<_>>().concat();
        }
        let store = if let Some(file) = self.file {
            Store::File(file.into_inner().map_err(io::IntoInnerError::into_error)?)
        } else {
            self.runs.push(Run { begin: 0, end: self.bytes.len() as u64 });
            self.bytes.shrink_to_fit();
            Store::Memory(self.bytes)
        };
        Ok(Sorted { key: self.key, store, runs: self.runs, count: self.count, extras: self.extras })
    }
}

/// Returns the record at a place, with its length.
fn packed(bytes: &[u8], begin: u32) -> &[u8] {
    let rest = &bytes[begin as usize..];
    &rest[..LENGTH + length(rest).unwrap_or(0)]
}

/// Returns the length of the record at the begin of some bytes.
fn length(bytes: &[u8]) -> Option<usize> {
    let length = u32::from_le_bytes(*bytes.first_chunk::<LENGTH>()?);
    Some(length as usize)
}

impl<K: Ord + Copy> Sorted<K> {
    /// Returns the number of records.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns a column for each extra field that a record has.
    pub fn extra_columns(&self) -> ExtraColumns {
        Extra::ALL.into_iter().filter(|extra| self.extras[*extra as usize]).collect()
    }

    /// Returns a reader of the records in order, from the first.
    pub fn reader(self: &Arc<Self>) -> SortedReader<K> {
        let cursor = |run: &Run| Cursor {
            begin: run.begin,
            end: run.end,
            chunk: vec![],
            at: 0,
            record: Record::unknown(),
        };
        SortedReader {
            cursors: self.runs.iter().map(cursor).collect(),
            sorted: Arc::clone(self),
            others: BinaryHeap::new(),
            current: None,
            has_begun: false,
        }
    }
}

/// A reader of sorted records: a merge of their parts.
pub struct SortedReader<K> {
    sorted: Arc<Sorted<K>>,
    cursors: Vec<Cursor>,
    /// The next key of each other part.
    others: BinaryHeap<Reverse<(K, usize)>>,
    /// The part with the current record.
    current: Option<usize>,
    has_begun: bool,
}

impl<K: Ord + Copy> SortedReader<K> {
    /// Returns the next record.
    ///
    /// # Errors
    /// The temporary file cannot be read.
    pub fn next_record(&mut self) -> io::Result<Option<&mut Record>> {
        let Sorted { key, store, .. } = &*self.sorted;
        if let Some(current) = self.current {
            if self.cursors[current].advance(store)? {
                let next = (key(&self.cursors[current].record), current);
                match self.others.peek_mut() {
                    Some(mut other) if other.0 < next => {
                        self.current = Some(other.0.1);
                        other.0 = next;
                    }
                    _ => {}
                }
            } else {
                self.current = self.others.pop().map(|Reverse((_, run))| run);
            }
        } else if !self.has_begun {
            self.has_begun = true;
            for (run, cursor) in self.cursors.iter_mut().enumerate() {
                if cursor.advance(store)? {
                    self.others.push(Reverse((key(&cursor.record), run)));
                }
            }
            self.current = self.others.pop().map(|Reverse((_, run))| run);
        }
        Ok(self.current.map(|current| &mut self.cursors[current].record))
    }
}

/// A place in a part.
struct Cursor {
    /// The bytes of the part behind the chunk.
    begin: u64,
    end: u64,
    chunk: Vec<u8>,
    at: usize,
    record: Record,
}

impl Cursor {
    /// Goes to the next record; `false` at the end.
    fn advance(&mut self, store: &Store) -> io::Result<bool> {
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "the temporary file was changed");
        self.hold(store, LENGTH)?;
        let Some(length) = length(&self.chunk[self.at..]) else { return Ok(false) };
        self.hold(store, LENGTH + length)?;
        let from = self.at + LENGTH;
        let bytes = self.chunk.get(from..from + length).ok_or_else(damaged)?;
        self.record.unpack(bytes).ok_or_else(damaged)?;
        self.at = from + length;
        Ok(true)
    }

    /// Reads on until the chunk has so many bytes behind its place, or the part ends.
    fn hold(&mut self, store: &Store, wanted: usize) -> io::Result<()> {
        if self.chunk.len() - self.at >= wanted || self.begin == self.end {
            return Ok(());
        }
        self.chunk.drain(..self.at);
        self.at = 0;
        let kept = self.chunk.len();
        let left = usize::try_from(self.end - self.begin).unwrap_or(usize::MAX);
        let more = CHUNK.max(wanted - kept).min(left);
        match store {
            Store::Memory(bytes) => {
                let begin = usize::try_from(self.begin).unwrap_or(usize::MAX);
                self.chunk.extend_from_slice(&bytes[begin..begin + more]);
            }
            Store::File(file) => {
                self.chunk.resize(kept + more, 0);
                file.read_exact_at(&mut self.chunk[kept..], self.begin)?;
            }
        }
        self.begin += more as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::swf::Field;

    fn record(submit: i64, job: i64) -> Record {
        let mut record = Record::unknown();
        record.set(Field::Submit, submit);
        record.set(Field::Job, job);
        record
            .extras_mut()
            .set(Extra::Name, &"n".repeat(usize::try_from(submit.rem_euclid(90)).unwrap()))
            .unwrap();
        record
    }

    fn submit(record: &Record) -> i64 {
        record.get(Field::Submit)
    }

    /// Returns the sorted records, and the number of parts.
    fn sorted(records: &[Record], held: usize) -> (Vec<Record>, usize) {
        let mut sort = Sorter::holding(held, submit);
        for record in records {
            sort.push(record).unwrap();
        }
        let sorted = Arc::new(sort.finish().unwrap());
        assert_eq!(sorted.count(), records.len() as u64);
        let read = || {
            let (mut reader, mut found) = (sorted.reader(), vec![]);
            while let Some(record) = reader.next_record().unwrap() {
                found.push(record.clone());
            }
            assert!(reader.next_record().unwrap().is_none(), "it stays at the end");
            found
        };
        let found = read();
        assert_eq!(read(), found, "again");
        (found, sorted.runs.len())
    }

    #[test]
    fn records_in_order_are_one_part() {
        let records: Vec<_> = (0..5_000).map(|at| record(at / 3, 5_000 - at)).collect();
        assert_eq!(sorted(&records, HELD), (records.clone(), 1));
        assert_eq!(sorted(&records, 999), (records.clone(), 1));
        let reverse: Vec<_> = records.iter().rev().cloned().collect();
        let (found, parts) = sorted(&reverse, 40_000);
        assert!(found.iter().map(submit).eq(records.iter().map(submit)) && parts > 3, "{parts}");
        assert_eq!(sorted(&[], 9), (vec![], 1));
    }

    #[test]
    fn columns_are_those_that_a_record_has() {
        let mut sorter = Sorter::new(submit);
        sorter.push(&Record::unknown()).unwrap();
        sorter.push(&record(1, 1)).unwrap();
        assert_eq!(sorter.finish().unwrap().extra_columns().to_string(), "; Extra: name");
    }

    proptest! {
        #[test]
        fn as_a_stable_sort(submits in prop::collection::vec(-3_i64..300, 0..300), held in 1_usize..3_000) {
            let records: Vec<_> = (1..).zip(submits).map(|(job, submit)| record(submit, job)).collect();
            let mut expect = records.clone();
            expect.sort_by_key(submit);
            prop_assert_eq!(sorted(&records, held).0, expect);
        }
    }
}
