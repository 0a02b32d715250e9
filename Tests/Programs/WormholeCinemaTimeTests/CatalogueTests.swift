import Foundation
import Testing
import WormholeTestSupport

@testable import WormholeCinemaTime

@Suite("The catalogue", .blocking)
struct CatalogueTests {
  @Test("has nine films, each with everything that a view shows")
  func films() {
    #expect(Movie.all.count == 9)
    #expect(Set(Movie.all.map(\.id)).count == 9)
    for movie in Movie.all {
      #expect(!movie.title.isEmpty && !movie.director.isEmpty && !movie.actors.isEmpty)
      #expect(movie.synopsis.count > 100)
    }
    #expect(Movie.of(23523)?.ticket == "Africa Screams @ 15:00")
    #expect(Movie.of(1) == nil)
  }
}
