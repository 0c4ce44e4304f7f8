//! Tables for Python: an Arrow record batch for pandas, polars, pyarrow and other consumers of Arrow streams.
//!
//! `lowtide_report::frame` defines the columns, and `lowtide._tables` makes DataFrames.

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator,
    RecordBatchOptions, StringArray,
};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{DataType, Field, Schema};
use lowtide_report::frame::{Column, Frame, Values};
use numpy::PyArray1;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};
use std::collections::HashMap;
use std::sync::Arc;

/// A table: columns of equal length, each with a name, a unit and a description.
#[pyclass(frozen, module = "lowtide._native")]
pub struct Table {
    batch: RecordBatch,
}

impl Table {
    pub fn new(frame: Frame) -> Self {
        let rows = frame.rows();
        let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = frame.columns.into_iter().map(arrow).unzip();
        // Give the number of rows explicitly, because a table may have no columns.
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options);
        Table { batch: batch.expect("columns are as long as each other") }
    }
}

fn arrow(column: Column) -> (Field, ArrayRef) {
    let (kind, values): (DataType, ArrayRef) = match column.values {
        Values::Text(values) => (DataType::Utf8, Arc::new(StringArray::from_iter(values))),
        Values::Whole(values) => (DataType::Int64, Arc::new(Int64Array::from(values))),
        Values::Real(values) => (DataType::Float64, Arc::new(Float64Array::from(values))),
        Values::Flag(values) => (DataType::Boolean, Arc::new(BooleanArray::from(values))),
    };
    let about = [("unit", column.unit.to_owned()), ("doc", column.doc)];
    let metadata: HashMap<String, String> = about.map(|(key, text)| (key.to_owned(), text)).into();
    (Field::new(column.name, kind, true).with_metadata(metadata), values)
}

#[pymethods]
impl Table {
    /// Names, types, units and descriptions of the columns.
    #[getter]
    fn columns(&self) -> Vec<(String, &'static str, String, String)> {
        let about = |field: &Field, key: &str| field.metadata().get(key).cloned().unwrap_or_default();
        let kind = |field: &Field| match field.data_type() {
            DataType::Utf8 => "text",
            DataType::Int64 => "whole",
            DataType::Boolean => "flag",
            _ => "real",
        };
        let schema = self.batch.schema();
        let one = |field: &Arc<Field>| {
            (field.name().clone(), kind(field), about(field, "unit"), about(field, "doc"))
        };
        schema.fields().iter().map(one).collect()
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// Returns the values of a column, as a list for text and a numpy array otherwise. If whole numbers or flags are
    /// absent, also returns a mask that is true for absent values.
    fn column<'py>(
        &self,
        py: Python<'py>,
        name: &str,
    ) -> PyResult<(Bound<'py, PyAny>, Option<Bound<'py, PyAny>>)> {
        let column = self.batch.column_by_name(name).ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        let any = column.as_any();
        let absent = || {
            let nulls = column.nulls().filter(|nulls| nulls.null_count() > 0)?;
            let absent: Vec<bool> = nulls.iter().map(|there| !there).collect();
            Some(PyArray1::from_vec(py, absent).into_any())
        };
        if let Some(whole) = any.downcast_ref::<Int64Array>() {
            return Ok((PyArray1::from_slice(py, whole.values()).into_any(), absent()));
        }
        if let Some(real) = any.downcast_ref::<Float64Array>() {
            let values = real.iter().map(|value| value.unwrap_or(f64::NAN)).collect();
            return Ok((PyArray1::from_vec(py, values).into_any(), None));
        }
        if let Some(flags) = any.downcast_ref::<BooleanArray>() {
            let values = flags.iter().map(|value| value.unwrap_or(false)).collect();
            return Ok((PyArray1::from_vec(py, values).into_any(), absent()));
        }
        let words = any.downcast_ref::<StringArray>().expect("there is no other type");
        Ok((PyList::new(py, words.iter())?.into_any(), None))
    }

    /// Returns the table as an Arrow stream (the Arrow PyCapsule interface). `requested_schema` is ignored.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }

    /// Returns the schema of the Arrow stream.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.batch.schema()).expect("plain types have a schema");
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    fn __repr__(&self) -> String {
        let (rows, columns) = (self.batch.num_rows(), self.batch.num_columns());
        format!("<lowtide.Table: {rows} rows, {columns} columns>")
    }
}
