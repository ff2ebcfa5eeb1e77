"""Files for spark-submit, in a folder of their own: Spark puts the folder of a job's file on the driver's path, where
other modules' names would hide those of other packages."""
