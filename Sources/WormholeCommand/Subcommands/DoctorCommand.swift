enum DoctorCommand {
  static let description = CommandDescription(
    name: "doctor",
    abstract: "Show what is wrong with the container and how to mend it.",
    options: [.json])
}
