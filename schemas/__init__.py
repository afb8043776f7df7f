"""What the data is: record types, turns, reasons, formats and the Arrow and Avro schemas. No Beam."""
