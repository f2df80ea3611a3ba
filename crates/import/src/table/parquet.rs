//! Tables in Parquet.

#[cfg(feature = "parquet")]
pub(crate) use read::ParquetRows;
#[cfg(not(feature = "parquet"))]
pub(crate) use without::ParquetRows;

#[cfg(not(feature = "parquet"))]
mod without {
    use miserly_workload::Trace;

    use crate::error::ImportError;
    use crate::table::source::{RowWork, Wanted};

    /// No rows can be: this build does not read Parquet.
    pub(crate) enum ParquetRows {}

    impl ParquetRows {
        pub(crate) fn open(trace: &Trace) -> Result<ParquetRows, ImportError> {
            Err(ImportError::NoParquet { name: trace.name().into() })
        }

        pub(crate) fn names(&self) -> Vec<String> {
            match *self {}
        }

        pub(crate) fn each(&mut self, _: &Wanted, _: &mut RowWork<'_>) -> Result<(), ImportError> {
            match *self {}
        }
    }
}

#[cfg(feature = "parquet")]
mod read {
    use miserly_workload::{Stored, Trace};
    use parquet::basic::{ConvertedType, LogicalType, TimeUnit};
    use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
    use parquet::data_type::{
        BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType,
        FloatType, Int32Type, Int64Type, Int96, Int96Type,
    };
    use parquet::errors::ParquetError;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::schema::types::ColumnDescriptor;

    use crate::error::ImportError;
    use crate::table::cell::Cell;
    use crate::table::source::{RowWork, Wanted};

    /// Rows that are decoded at once.
    const BATCH: usize = 4096;

    const DAY_MICROS: i64 = 86_400_000_000;

    /// The rows of a Parquet file.
    pub(crate) struct ParquetRows {
        name: String,
        reader: Box<dyn FileReader>,
    }

    impl ParquetRows {
        pub(crate) fn open(trace: &Trace) -> Result<ParquetRows, ImportError> {
            let name = trace.name().to_owned();
            let failed = |error| ImportError::Parquet { name: name.clone(), error };
            let reader: Box<dyn FileReader> = match trace.stored()? {
                Stored::File(file) => Box::new(SerializedFileReader::new(file).map_err(failed)?),
                Stored::Bytes(bytes) => {
                    Box::new(SerializedFileReader::new(bytes::Bytes::from(bytes)).map_err(failed)?)
                }
            };
            Ok(ParquetRows { name, reader })
        }

        pub(crate) fn names(&self) -> Vec<String> {
            let columns = self.reader.metadata().file_metadata().schema_descr().columns();
            columns.iter().map(|column| column.path().string()).collect()
        }

        pub(crate) fn each(&mut self, wanted: &Wanted, work: &mut RowWork<'_>) -> Result<(), ImportError> {
            let failed = |error| ImportError::Parquet { name: self.name.clone(), error };
            let mut number = 0;
            for group in 0..self.reader.num_row_groups() {
                let group = self.reader.get_row_group(group).map_err(failed)?;
                let mut left = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
                let columns = wanted.columns.iter().map(|&column| {
                    let descriptor = group.metadata().schema_descr().column(column);
                    Column::new(&descriptor, group.get_column_reader(column)?)
                });
                let mut columns = columns.collect::<Result<Vec<_>, _>>().map_err(failed)?;
                while left > 0 {
                    let rows = left.min(BATCH);
                    for column in &mut columns {
                        column.fill(rows).map_err(failed)?;
                    }
                    let mut cells = [Cell::Null; Wanted::MOST];
                    let mut places = [0; Wanted::MOST];
                    for row in 0..rows {
                        if number == wanted.rows {
                            return Ok(());
                        }
                        number += 1;
                        for ((cell, next), column) in cells.iter_mut().zip(&mut places).zip(&columns) {
                            *cell = column.cell(row, next);
                        }
                        work(Ok(&cells[..columns.len()]), number)?;
                    }
                    left -= rows;
                }
            }
            Ok(())
        }
    }

    /// A column with its next values.
    struct Column {
        values: Values,
        meaning: Meaning,
        /// The level of a value that is not null.
        level: i16,
        levels: Vec<i16>,
    }

    enum Values {
        Bool(ColumnReaderImpl<BoolType>, Vec<bool>),
        I32(ColumnReaderImpl<Int32Type>, Vec<i32>),
        I64(ColumnReaderImpl<Int64Type>, Vec<i64>),
        I96(ColumnReaderImpl<Int96Type>, Vec<Int96>),
        F32(ColumnReaderImpl<FloatType>, Vec<f32>),
        F64(ColumnReaderImpl<DoubleType>, Vec<f64>),
        Bytes(ColumnReaderImpl<ByteArrayType>, Vec<ByteArray>),
        Fixed(ColumnReaderImpl<FixedLenByteArrayType>, Vec<FixedLenByteArray>),
    }

    /// What a number of the file is.
    #[derive(Clone, Copy)]
    enum Meaning {
        Plain,
        /// An instant, or a local time: so many are a second.
        Time {
            is_utc: bool,
            per_second: i64,
        },
        Date,
        /// A number with so many decimals.
        Decimal(i32),
    }

    impl Meaning {
        fn new(column: &ColumnDescriptor) -> Meaning {
            let time = |is_utc, unit: &TimeUnit| {
                let per_second = match unit {
                    TimeUnit::MILLIS => 1_000,
                    TimeUnit::MICROS => 1_000_000,
                    TimeUnit::NANOS => 1_000_000_000,
                };
                Meaning::Time { is_utc, per_second }
            };
            match (column.logical_type_ref(), column.converted_type()) {
                (Some(LogicalType::Timestamp(stamp)), _) => time(stamp.is_adjusted_to_u_t_c, &stamp.unit),
                (None, ConvertedType::TIMESTAMP_MILLIS) => time(true, &TimeUnit::MILLIS),
                (None, ConvertedType::TIMESTAMP_MICROS) => time(true, &TimeUnit::MICROS),
                (Some(LogicalType::Date), _) | (None, ConvertedType::DATE) => Meaning::Date,
                (Some(LogicalType::Decimal(_)), _) | (None, ConvertedType::DECIMAL) => {
                    Meaning::Decimal(column.type_scale())
                }
                _ => Meaning::Plain,
            }
        }

        fn of<'a>(self, number: i64) -> Cell<'a> {
            match self {
                Meaning::Plain => Cell::Int(number),
                Meaning::Time { is_utc, per_second } => {
                    let micros = if per_second > 1_000_000 {
                        number.div_euclid(per_second / 1_000_000)
                    } else {
                        number.saturating_mul(1_000_000 / per_second)
                    };
                    if is_utc { Cell::Instant(micros) } else { Cell::Local(micros) }
                }
                Meaning::Date => Cell::Local(number.saturating_mul(DAY_MICROS)),
                Meaning::Decimal(scale) => Cell::Float(number as f64 / 10_f64.powi(scale)),
            }
        }
    }

    impl Column {
        fn new(descriptor: &ColumnDescriptor, reader: ColumnReader) -> Result<Column, ParquetError> {
            if descriptor.max_rep_level() > 0 {
                let name = descriptor.path().string();
                return Err(ParquetError::General(format!(
                    "column {name:?} has lists, and a field of a job is one value"
                )));
            }
            let values = match reader {
                ColumnReader::BoolColumnReader(reader) => Values::Bool(reader, vec![]),
                ColumnReader::Int32ColumnReader(reader) => Values::I32(reader, vec![]),
                ColumnReader::Int64ColumnReader(reader) => Values::I64(reader, vec![]),
                ColumnReader::Int96ColumnReader(reader) => Values::I96(reader, vec![]),
                ColumnReader::FloatColumnReader(reader) => Values::F32(reader, vec![]),
                ColumnReader::DoubleColumnReader(reader) => Values::F64(reader, vec![]),
                ColumnReader::ByteArrayColumnReader(reader) => Values::Bytes(reader, vec![]),
                ColumnReader::FixedLenByteArrayColumnReader(reader) => Values::Fixed(reader, vec![]),
            };
            let (meaning, level) = (Meaning::new(descriptor), descriptor.max_def_level());
            Ok(Column { values, meaning, level, levels: vec![] })
        }

        /// Decodes the next rows.
        fn fill(&mut self, rows: usize) -> Result<(), ParquetError> {
            self.levels.clear();
            let levels = (self.level > 0).then_some(&mut self.levels);
            match &mut self.values {
                Values::Bool(reader, values) => fill(reader, values, levels, rows),
                Values::I32(reader, values) => fill(reader, values, levels, rows),
                Values::I64(reader, values) => fill(reader, values, levels, rows),
                Values::I96(reader, values) => fill(reader, values, levels, rows),
                Values::F32(reader, values) => fill(reader, values, levels, rows),
                Values::F64(reader, values) => fill(reader, values, levels, rows),
                Values::Bytes(reader, values) => fill(reader, values, levels, rows),
                Values::Fixed(reader, values) => fill(reader, values, levels, rows),
            }
        }

        /// Returns the cell of a row. `next` is the place of its value, unless it is null, and then that of the next one.
        fn cell(&self, row: usize, next: &mut usize) -> Cell<'_> {
            if self.level > 0 && self.levels.get(row).is_none_or(|level| *level < self.level) {
                return Cell::Null;
            }
            let at = *next;
            *next += 1;
            let found = match &self.values {
                Values::Bool(_, values) => values.get(at).map(|&truth| Cell::Int(truth.into())),
                Values::I32(_, values) => values.get(at).map(|&number| self.meaning.of(number.into())),
                Values::I64(_, values) => values.get(at).map(|&number| self.meaning.of(number)),
                Values::I96(_, values) => values.get(at).map(|time| Cell::Local(time.to_micros())),
                Values::F32(_, values) => values.get(at).map(|&number| Cell::Float(number.into())),
                Values::F64(_, values) => values.get(at).map(|&number| Cell::Float(number)),
                Values::Bytes(_, values) => values.get(at).map(|text| Cell::Text(text.data())),
                Values::Fixed(_, values) => values.get(at).map(|text| Cell::Text(text.data())),
            };
            found.unwrap_or(Cell::Null)
        }
    }

    fn fill<T: DataType>(
        reader: &mut ColumnReaderImpl<T>,
        values: &mut Vec<T::T>,
        mut levels: Option<&mut Vec<i16>>,
        rows: usize,
    ) -> Result<(), ParquetError> {
        values.clear();
        let mut read = 0;
        while read < rows {
            let (records, _, _) = reader.read_records(rows - read, levels.as_deref_mut(), None, values)?;
            if records == 0 {
                return Err(ParquetError::EOF("a column has fewer rows than its group".into()));
            }
            read += records;
        }
        Ok(())
    }
}
